"""The views in the database. How they are written stands in `writing`."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, select, true, tuple_

from stream.database.engine import Database
from stream.database.moments import number
from stream.database.schema import conversations, events, offsets, positions, states
from stream.views import rows
from stream.views.port import (
    ALL,
    PAGE,
    Activity,
    Batch,
    ConversationRow,
    ConversationView,
    Filter,
    HolderKey,
    HolderRow,
    Point,
    PointKey,
    StoredEvent,
    TargetRow,
)
from stream.views.writing import Writing, recount
from tracker.events import EventType
from tracker.stances import Stance

_EVENT = (events.c.position, events.c.id, events.c.body, events.c.retracted_by)
_COUNTS = (
    conversations.c.conversation,
    conversations.c.active_at,
    conversations.c.events,
    conversations.c.flips,
)


class SqlViews:
    """Views in PostgreSQL or SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, batch: Batch) -> Mapping[str, int]:
        """As the port says."""
        async with self._database.writing() as connection:
            return await Writing(connection).put(batch)

    async def forget(self, tenant: str, conversation: str, holder: str) -> int:
        """As the port says."""
        async with self._database.writing() as connection:
            return await Writing(connection).forget(tenant, conversation, holder)

    async def recount(self) -> None:
        """As the port says. It takes as long as there are events: open the database without limits."""
        async with self._database.writing(seconds=None) as connection:
            await connection.execute(recount())

    async def offsets(self, topic: str) -> Mapping[int, int]:
        """As the port says."""
        found = await self._rows(select(offsets.c.partition, offsets.c.next).where(offsets.c.topic == topic))
        return {row.partition: row.next for row in found}

    async def latest(self, tenant: str) -> int:
        """As the port says."""
        found = await self._rows(select(positions.c.last).where(positions.c.tenant == tenant))
        return found[0].last if found else 0

    async def position_of(self, tenant: str, event: str) -> int | None:
        """As the port says."""
        own = events.c.tenant == tenant, events.c.id == event
        found = await self._rows(select(events.c.position).where(*own))
        return found[0].position if found else None

    async def events(
        self,
        tenant: str,
        where: Filter = ALL,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int = PAGE,
    ) -> list[StoredEvent]:
        """As the port says."""
        wanted = select(*_EVENT).where(events.c.tenant == tenant, *_conditions(where)).limit(limit)
        if before is not None:
            wanted = wanted.where(events.c.position < before)
        if after is not None:
            wanted = wanted.where(events.c.position > after)
        order = events.c.position.desc() if after is None else events.c.position
        return [_stored(row) for row in await self._rows(wanted.order_by(order))]

    async def conversations(
        self, tenant: str, *, behind: Activity | None = None, limit: int = PAGE
    ) -> list[ConversationRow]:
        """As the port says."""
        key = tuple_(conversations.c.active_at, conversations.c.conversation)
        wanted = select(*_COUNTS).where(conversations.c.tenant == tenant)
        if behind is not None:
            wanted = wanted.where(key < (number(behind.active_at), behind.conversation))
        latest = conversations.c.active_at.desc(), conversations.c.conversation.desc()
        return [rows.conversation(row) for row in await self._rows(wanted.order_by(*latest).limit(limit))]

    async def conversation(self, tenant: str, conversation: str) -> ConversationView | None:
        """As the port says."""
        own = conversations.c.tenant == tenant, conversations.c.conversation == conversation
        found = await self._rows(select(*_COUNTS, conversations.c.header).where(*own))
        if not found:
            return None
        counted = select(states.c.target, states.c.stance, func.count().label("holders"))
        held = counted.where(states.c.tenant == tenant, states.c.conversation == conversation)
        counts: dict[str, dict[Stance, int]] = {}
        for row in await self._rows(held.group_by(states.c.target, states.c.stance)):
            counts.setdefault(row.target, {})[Stance(row.stance)] = row.holders
        targets = (
            TargetRow(each.id, each.proposition, each.status, counts.get(each.id, {}))
            for each in rows.header(found[0].header).targets
        )
        return ConversationView(rows.conversation(found[0]), tuple(targets))

    async def holders(
        self,
        tenant: str,
        *,
        conversation: str | None = None,
        holder: str | None = None,
        behind: HolderKey | None = None,
        limit: int = PAGE,
    ) -> list[HolderRow]:
        """As the port says."""
        key = states.c.conversation, states.c.holder, states.c.target
        same = (conversations.c.tenant == states.c.tenant) & (
            conversations.c.conversation == states.c.conversation
        )
        wanted = select(states, conversations.c.header).outerjoin_from(states, conversations, same)
        wanted = wanted.where(states.c.tenant == tenant).order_by(*key).limit(limit)
        if conversation is not None:
            wanted = wanted.where(states.c.conversation == conversation)
        if holder is not None:
            wanted = wanted.where(states.c.holder == holder)
        if behind is not None:
            wanted = wanted.where(tuple_(*key) > behind)
        pins = {}
        found = await self._rows(wanted)
        for row in found:
            if row.conversation not in pins:
                pins[row.conversation] = rows.header(row.header).pins
        return [rows.holder(row, pins[row.conversation]) for row in found]

    async def trajectory(
        self,
        tenant: str,
        conversation: str,
        holder: str,
        target: str,
        *,
        behind: PointKey | None = None,
        limit: int = PAGE,
    ) -> list[Point]:
        """As the port says."""
        key = events.c.sequence, events.c.position
        where = Filter(conversation=conversation, holder=holder, target=target)
        wanted = select(events).where(events.c.tenant == tenant, *_conditions(where))
        wanted = wanted.where(events.c.sequence.is_not(None), events.c.type != EventType.RETRACTED)
        if behind is not None:
            wanted = wanted.where(tuple_(*key) > behind)
        return [rows.point(row) for row in await self._rows(wanted.order_by(*key).limit(limit))]

    async def _rows(self, wanted: Select[Any]) -> list[Row[Any]]:
        async with self._database.reading() as connection:
            return [*await connection.execute(wanted)]


def _stored(row: Row[Any]) -> StoredEvent:
    return StoredEvent(row.position, row.id, row.body, row.retracted_by)


def _conditions(where: Filter) -> list[ColumnElement[bool]]:
    """What a filter asks of events. Only flips have a trigger: so few need be looked at."""
    named = ("conversation", "holder", "target", "trigger")
    found = [events.c[name] == value for name in named if (value := getattr(where, name)) is not None]
    if where.types:
        found.append(events.c.type.in_(sorted(where.types)))
    if where.flips or where.trigger is not None:
        found.append(events.c.flip == true())
    return found
