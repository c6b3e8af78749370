"""The tables of principals and keys, on the MetaData of `schema`."""

from sqlalchemy import BigInteger, Column, ForeignKeyConstraint, Index, Table

from stream.database.schema import ACCOUNTS, metadata
from stream.database.types import Name

principals = Table(
    "principals",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("made_at", BigInteger, nullable=False),
    schema=ACCOUNTS,
)

keys = Table(
    "keys",
    metadata,
    Column("id", Name, primary_key=True),
    Column("tenant", Name, nullable=False),
    Column("principal", Name, nullable=False),
    Column("scopes", Name, nullable=False),
    Column("digest", Name, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    ForeignKeyConstraint(
        ["tenant", "principal"],
        [f"{ACCOUNTS}.principals.tenant", f"{ACCOUNTS}.principals.name"],
        name="fk_keys_principal",
    ),
    Index("ix_keys_tenant", "tenant", "made_at", "id"),
    schema=ACCOUNTS,
)
"""`scopes` with spaces between, in order; `digest` as `stream.accounts.secrets` makes it."""
