"""The tables of both schemas on one MetaData: migrations make them, and a test holds the two equal.

On PostgreSQL a schema is a schema; on SQLite it is a file of its own, attached under the schema's name (see
`engine`). Times are whole microseconds since 1970 in UTC, which both databases keep and compare alike.
Nothing refers from one schema to the other: `views` may be emptied at any time.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    UniqueConstraint,
    text,
)

from stream.database.types import Name

ACCOUNTS, VIEWS = "accounts", "views"
SCHEMAS = (ACCOUNTS, VIEWS)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

positions = Table(
    "positions",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("last", BigInteger, nullable=False),
    schema=VIEWS,
)
"""The newest position of each tenant. Who writes of a tenant holds this row until the commit."""

events = Table(
    "events",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Name, nullable=False),
    Column("conversation", Name, nullable=False),
    Column("sequence", BigInteger),
    Column("type", Name, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("holder", Name),
    Column("target", Name),
    Column("turn", Name),
    Column("trigger", Name),
    Column("before", Name),
    Column("after", Name),
    Column("flip", Boolean, nullable=False),
    Column("retracted_by", Name),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("id", "tenant", name="uq_events_id"),
    Index("ix_events_conversation", "tenant", "conversation", "position"),
    Index("ix_events_trajectory", "tenant", "conversation", "holder", "target", "sequence", "position"),
    Index("ix_events_holder", "tenant", "holder", "position"),
    Index(
        "ix_events_flips",
        "tenant",
        "position",
        postgresql_where=text("flip"),
        sqlite_where=text("flip = 1"),
    ),
    schema=VIEWS,
)
"""Events by id with their position; `flip`: it stands in the flips topic, too."""

conversations = Table(
    "conversations",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("conversation", Name, primary_key=True),
    Column("active_at", BigInteger, nullable=False),
    Column("events", BigInteger, nullable=False, default=0),
    Column("flips", BigInteger, nullable=False, default=0),
    Column("version", BigInteger, nullable=False),
    Column("header", LargeBinary),
    Index("ix_conversations_activity", "tenant", "active_at", "conversation"),
    schema=VIEWS,
)
"""`events` and `flips` count what stands: no retractions, and nothing retracted."""

states = Table(
    "states",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("conversation", Name, primary_key=True),
    Column("holder", Name, primary_key=True),
    Column("target", Name, primary_key=True),
    Column("stance", Name, nullable=False),
    Column("turn", Name),
    Column("confidence", Float),
    Column("flips", Integer, nullable=False),
    Column("version", BigInteger, nullable=False),
    Index("ix_states_holder", "tenant", "holder"),
    schema=VIEWS,
)

forgotten = Table(
    "forgotten",
    metadata,
    Column("who", Name, primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    schema=VIEWS,
)
"""Erased holders by a digest (their names are not kept), and up to which sequence nothing comes back."""

offsets = Table(
    "offsets",
    metadata,
    Column("topic", Name, primary_key=True),
    Column("partition", Integer, primary_key=True, autoincrement=False),
    Column("next", BigInteger, nullable=False),
    schema=VIEWS,
)
"""Where the feeder goes on: written with what was read, in the same transaction."""
