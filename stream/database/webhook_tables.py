"""The tables of webhooks and their backlog, on the MetaData of `schema`."""

from sqlalchemy import BigInteger, Column, ForeignKeyConstraint, Index, Integer, LargeBinary, Table, text

from stream.database.schema import ACCOUNTS, metadata
from stream.database.types import Name

webhooks = Table(
    "webhooks",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("id", Name, primary_key=True),
    Column("url", Name, nullable=False),
    Column("secrets", Name, nullable=False),
    Column("types", Name, nullable=False),
    Column("conversations", LargeBinary, nullable=False),
    Column("status", Name, nullable=False),
    Column("by", Name, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
    schema=ACCOUNTS,
)
"""`secrets` and `types` with spaces between; `conversations` as a JSON array, for names may hold anything."""

deliveries = Table(
    "deliveries",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("webhook", Name, primary_key=True),
    Column("event", Name, primary_key=True),
    Column("conversation", Name, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("state", Name, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due", BigInteger),
    Column("status", Integer),
    Column("ended_at", BigInteger),
    ForeignKeyConstraint(
        ["tenant", "webhook"],
        [f"{ACCOUNTS}.webhooks.tenant", f"{ACCOUNTS}.webhooks.id"],
        name="fk_deliveries_webhook",
        ondelete="CASCADE",
    ),
    Index("ix_deliveries_conversation", "tenant", "conversation", "event"),
    Index(
        "ix_deliveries_due",
        "due",
        postgresql_where=text("due IS NOT NULL"),
        sqlite_where=text("due IS NOT NULL"),
    ),
    Index(
        "ix_deliveries_ended_at",
        "ended_at",
        postgresql_where=text("ended_at IS NOT NULL"),
        sqlite_where=text("ended_at IS NOT NULL"),
    ),
    schema=ACCOUNTS,
)
"""`due` where an attempt is to come, `ended_at` where none is."""
