"""Webhooks and what is to be delivered to them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TEXT

revision, down_revision = "0003_webhooks", "0002_accounts"

ACCOUNTS = "accounts"
NAME = sa.Text().with_variant(TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables of webhooks and deliveries."""
    op.create_table(
        "webhooks",
        *(
            sa.Column(name, NAME, nullable=False)
            for name in ("tenant", "id", "url", "secrets", "types", "status", "by")
        ),
        sa.Column("conversations", sa.LargeBinary, nullable=False),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name="pk_webhooks"),
        schema=ACCOUNTS,
    )
    _deliveries()


def _deliveries() -> None:
    op.create_table(
        "deliveries",
        *(
            sa.Column(name, NAME, nullable=False)
            for name in ("tenant", "webhook", "event", "conversation", "state")
        ),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due", sa.BigInteger),
        sa.Column("status", sa.Integer),
        sa.Column("ended_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("tenant", "webhook", "event", name="pk_deliveries"),
        sa.ForeignKeyConstraint(
            ["tenant", "webhook"],
            [f"{ACCOUNTS}.webhooks.tenant", f"{ACCOUNTS}.webhooks.id"],
            name="fk_deliveries_webhook",
            ondelete="CASCADE",
        ),
        schema=ACCOUNTS,
    )
    op.create_index(
        "ix_deliveries_conversation", "deliveries", ["tenant", "conversation", "event"], schema=ACCOUNTS
    )
    for column in ("due", "ended_at"):
        held = sa.text(f"{column} IS NOT NULL")
        op.create_index(
            f"ix_deliveries_{column}", "deliveries", [column], schema=ACCOUNTS,
            postgresql_where=held, sqlite_where=held,
        )  # fmt: skip


def downgrade() -> None:
    """Drop them."""
    for name in ("deliveries", "webhooks"):
        op.drop_table(name, schema=ACCOUNTS)
