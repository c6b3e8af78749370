"""The views: positions, events, conversations, states, who is forgotten, and the feeder's offsets."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TEXT

revision, down_revision = "0001_views", None

VIEWS = "views"
NAME = sa.Text().with_variant(TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables of `views`."""
    _positions()
    _events()
    _conversations()
    _states()
    op.create_table(
        "forgotten",
        sa.Column("who", NAME, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("who", name="pk_forgotten"),
        schema=VIEWS,
    )
    op.create_table(
        "offsets",
        sa.Column("topic", NAME, nullable=False),
        sa.Column("partition", sa.Integer, nullable=False),
        sa.Column("next", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("topic", "partition", name="pk_offsets"),
        schema=VIEWS,
    )


def _positions() -> None:
    op.create_table(
        "positions",
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant", name="pk_positions"),
        schema=VIEWS,
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("conversation", NAME, nullable=False),
        sa.Column("sequence", sa.BigInteger),
        sa.Column("type", NAME, nullable=False),
        sa.Column("time", sa.BigInteger, nullable=False),
        *(
            sa.Column(name, NAME)
            for name in ("holder", "target", "turn", "trigger", "before", "after", "retracted_by")
        ),
        sa.Column("flip", sa.Boolean, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "position", name="pk_events"),
        sa.UniqueConstraint("id", "tenant", name="uq_events_id"),
        schema=VIEWS,
    )
    for name, columns in (
        ("ix_events_conversation", ["tenant", "conversation", "position"]),
        ("ix_events_trajectory", ["tenant", "conversation", "holder", "target", "sequence", "position"]),
        ("ix_events_holder", ["tenant", "holder", "position"]),
    ):
        op.create_index(name, "events", columns, schema=VIEWS)
    op.create_index(
        "ix_events_flips", "events", ["tenant", "position"], schema=VIEWS,
        postgresql_where=sa.text("flip"), sqlite_where=sa.text("flip = 1"),
    )  # fmt: skip


def _conversations() -> None:
    op.create_table(
        "conversations",
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("conversation", NAME, nullable=False),
        sa.Column("active_at", sa.BigInteger, nullable=False),
        sa.Column("events", sa.BigInteger, nullable=False),
        sa.Column("flips", sa.BigInteger, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("header", sa.LargeBinary),
        sa.PrimaryKeyConstraint("tenant", "conversation", name="pk_conversations"),
        schema=VIEWS,
    )
    op.create_index(
        "ix_conversations_activity", "conversations", ["tenant", "active_at", "conversation"], schema=VIEWS
    )


def _states() -> None:
    op.create_table(
        "states",
        *(
            sa.Column(name, NAME, nullable=False)
            for name in ("tenant", "conversation", "holder", "target", "stance")
        ),
        sa.Column("turn", NAME),
        sa.Column("confidence", sa.Float),
        sa.Column("flips", sa.Integer, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "conversation", "holder", "target", name="pk_states"),
        schema=VIEWS,
    )
    op.create_index("ix_states_holder", "states", ["tenant", "holder"], schema=VIEWS)


def downgrade() -> None:
    """Drop them."""
    for name in ("offsets", "forgotten", "states", "conversations", "events", "positions"):
        op.drop_table(name, schema=VIEWS)
