"""The accounts: principals, and the keys by which they come."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TEXT

revision, down_revision = "0002_accounts", "0001_views"

ACCOUNTS = "accounts"
NAME = sa.Text().with_variant(TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables of principals and keys."""
    op.create_table(
        "principals",
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_principals"),
        schema=ACCOUNTS,
    )
    op.create_table(
        "keys",
        *(
            sa.Column(name, NAME, nullable=False)
            for name in ("id", "tenant", "principal", "scopes", "digest")
        ),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
        sa.ForeignKeyConstraint(
            ["tenant", "principal"],
            [f"{ACCOUNTS}.principals.tenant", f"{ACCOUNTS}.principals.name"],
            name="fk_keys_principal",
        ),
        schema=ACCOUNTS,
    )
    op.create_index("ix_keys_tenant", "keys", ["tenant", "made_at", "id"], schema=ACCOUNTS)


def downgrade() -> None:
    """Drop them."""
    for name in ("keys", "principals"):
        op.drop_table(name, schema=ACCOUNTS)
