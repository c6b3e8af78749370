"""Writing the views: one batch in one transaction, one writer of a tenant at a time.

Who writes takes the rows of all its tenants in `positions` first, in the order of their names, and keeps them
until the commit. So a tenant's positions become visible in their order (nobody can take p + 1 before p is
committed or given up), two writers never wait for each other in a ring, and what is read here of a tenant
stays true until the commit. SQLite has one writer at a time anyway.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Table, Update, and_, bindparam, case, delete, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from stream.database.moments import number
from stream.database.schema import conversations, events, forgotten, offsets, positions, states
from stream.views import rows
from stream.views.port import Batch, Headed, Held, Told
from tracker import keys
from tracker.events import EventType

Room = tuple[str, str]  # tenant, conversation
NO_HEADER = -1  # the version of a conversation whose header is still to come
_INSERTS: Mapping[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


class Writing:
    """What happens inside one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._insert = _INSERTS[connection.dialect.name]

    async def put(self, batch: Batch) -> dict[str, int]:
        """As the port says."""
        before = await self._hold({entry.tenant for entry in batch.entries})
        latest = await self._tell([entry for entry in batch.entries if isinstance(entry, Told)], before)
        await self._states([entry for entry in batch.entries if isinstance(entry, Held)])
        await self._headers([entry for entry in batch.entries if isinstance(entry, Headed)])
        await self._upsert(
            offsets,
            [
                {"topic": topic, "partition": partition, "next": offset}
                for (topic, partition), offset in sorted(batch.offsets.items())
            ],
        )
        return {tenant: last for tenant, last in latest.items() if last > before[tenant]}

    async def forget(self, tenant: str, conversation: str, holder: str) -> int:
        """As the port says."""
        await self._hold({tenant})
        newest = await self._connection.scalar(
            select(func.max(events.c.sequence)).where(_in_room(tenant, conversation))
        )
        return await self._forget(tenant, conversation, holder, (newest or 0) + 1)

    async def _hold(self, tenants: Iterable[str]) -> Counter[str]:
        """Take the tenants' positions, as they are now."""
        names = sorted(tenants)
        if not names:
            return Counter()
        fresh = self._insert(positions)
        held = fresh.on_conflict_do_update(index_elements=["tenant"], set_={"last": positions.c.last})
        await self._connection.execute(held, [{"tenant": name, "last": 0} for name in names])
        found = await self._connection.execute(select(positions).where(positions.c.tenant.in_(names)))
        return Counter({row.tenant: row.last for row in found})

    async def _tell(self, told: Sequence[Told], latest: Mapping[str, int]) -> Counter[str]:
        """Keep events that are new and not of somebody forgotten; the latest positions after them."""
        telling = Telling(Counter(latest), await self._known(told), await self._gone(told))
        for each in told:
            telling.tell(each)
        if telling.fresh:
            await self._connection.execute(events.insert(), [*telling.fresh.values()])
            moved = [{"tenant": tenant, "last": last} for tenant, last in sorted(telling.latest.items())]
            await self._upsert(positions, moved)
        if telling.retracted:
            await self._connection.execute(_RETRACT, telling.retracted)
        await self._count(telling)
        for each in telling.forgets:
            await self._forget(each.tenant, each.conversation, each.holder or "", each.sequence or 0)
        return telling.latest

    async def _known(self, told: Sequence[Told]) -> dict[tuple[str, str], str | None]:
        """Of the events and what they retract: type where it stands, None where it is retracted."""
        ids = {each.id for each in told} | {each.retracts for each in told if each.retracts is not None}
        if not ids:
            return {}
        columns = (events.c.tenant, events.c.id, events.c.type, events.c.retracted_by)
        found = await self._connection.execute(select(*columns).where(events.c.id.in_(sorted(ids))))
        return {(row.tenant, row.id): None if row.retracted_by else row.type for row in found}

    async def _gone(self, told: Sequence[Told]) -> dict[str, int]:
        """Up to which sequence holders of these events are forgotten, by digest."""
        people = sorted({who(each) for each in told})
        if not people:
            return {}
        found = await self._connection.execute(select(forgotten).where(forgotten.c.who.in_(people)))
        return {row.who: row.sequence for row in found}

    async def _count(self, telling: "Telling") -> None:
        """Add to what conversations count, and to when they were active."""
        if not telling.active:
            return
        insert = self._insert(conversations)
        added = {name: conversations.c[name] + insert.excluded[name] for name in ("events", "flips")}
        added["active_at"] = _later(conversations.c.active_at, insert.excluded.active_at)
        more = insert.on_conflict_do_update(index_elements=["tenant", "conversation"], set_=added)
        fresh = [
            {
                "tenant": room[0],
                "conversation": room[1],
                "active_at": active_at,
                "events": telling.events[room],
                "flips": telling.flips[room],
                "version": NO_HEADER,
            }
            for room, active_at in sorted(telling.active.items())
        ]
        await self._connection.execute(more, fresh)

    async def _forget(self, tenant: str, conversation: str, holder: str, upto: int) -> int:
        digest = keys.digest(tenant, conversation, holder, length=32)
        insert = self._insert(forgotten)
        further = insert.on_conflict_do_update(
            index_elements=["who"], set_={"sequence": _later(forgotten.c.sequence, insert.excluded.sequence)}
        )
        await self._connection.execute(further, [{"who": digest, "sequence": upto}])
        own = and_(events.c.holder == holder, events.c.type != EventType.FORGOTTEN)
        before = and_(events.c.sequence < upto, or_(own, events.c.retracted_by.is_not(None)))
        gone = await self._connection.execute(
            delete(events).where(_in_room(tenant, conversation), or_(before, events.c.sequence.is_(None)))
        )
        await self._connection.execute(
            recount().where(conversations.c.tenant == tenant, conversations.c.conversation == conversation)
        )
        return gone.rowcount

    async def _states(self, held: Sequence[Held]) -> None:
        gone, kept = dict[Any, Held](), dict[Any, Held]()
        for each in held:
            key = (each.tenant, each.conversation, each.holder, each.target)
            if each.state is None:
                gone[key] = each
                kept.pop(key, None)
            elif key not in kept or kept[key].version < each.version:
                kept[key] = each
        if gone:
            names = [column.name for column in states.primary_key]
            one = and_(*(states.c[name] == bindparam(f"the_{name}") for name in names))
            rows_gone = [dict(zip((f"the_{name}" for name in names), key, strict=True)) for key in gone]
            await self._connection.execute(delete(states).where(one), rows_gone)
        await self._upsert(states, [rows.of_state(each) for each in kept.values()], newer=True)

    async def _headers(self, headed: Sequence[Headed]) -> None:
        newest: dict[Room, Headed] = {}
        for each in headed:
            room = each.tenant, each.conversation
            if room not in newest or newest[room].header.version < each.header.version:
                newest[room] = each
        await self._upsert(conversations, [rows.of_header(each) for each in newest.values()], newer=True)

    async def _upsert(self, table: Table, given: Sequence[dict[str, Any]], *, newer: bool = False) -> None:
        """Insert rows or replace them; `newer`: where their version is higher than the one that is kept."""
        if not given:
            return
        insert = self._insert(table)
        key = [column.name for column in table.primary_key]
        values = {name: insert.excluded[name] for name in given[0] if name not in key}
        if "active_at" in values:
            values["active_at"] = _later(table.c.active_at, insert.excluded.active_at)
        guard = insert.excluded.version > table.c.version if newer else None
        whole = insert.on_conflict_do_update(index_elements=key, set_=values, where=guard)
        await self._connection.execute(whole, given)


class Telling:
    """What a batch's events do, told one after the other. `known` has the type of those that stand."""

    def __init__(
        self, latest: Counter[str], known: dict[tuple[str, str], str | None], gone: dict[str, int]
    ) -> None:
        self.latest, self._known, self._gone = latest, known, gone
        self.fresh: dict[tuple[str, str], dict[str, Any]] = {}
        self.retracted: list[dict[str, str]] = []
        self.forgets: list[Told] = []
        self.active: Counter[Room] = Counter()
        self.events: Counter[Room] = Counter()
        self.flips: Counter[Room] = Counter()

    def tell(self, told: Told) -> None:
        """The next event."""
        person, forgets = who(told), told.type == EventType.FORGOTTEN
        if not forgets and told.sequence is not None and told.sequence < self._gone.get(person, 0):
            return
        key = told.tenant, told.id
        if key not in self._known:
            self.latest[told.tenant] += 1
            self.fresh[key] = rows.of_event(told, self.latest[told.tenant])
            self._known[key] = told.type
            self._count(told, told.type, 1)
        if told.retracts is not None:
            self._retract(told, told.retracts)
        if forgets and told.sequence is not None:
            self.forgets.append(told)
            self._gone[person] = max(told.sequence, self._gone.get(person, 0))

    def _retract(self, by: Told, retracted: str) -> None:
        key = by.tenant, retracted
        kind = self._known.get(key)
        if kind is None:
            return
        self._known[key] = None
        self._count(by, kind, -1)
        if key in self.fresh:
            self.fresh[key]["retracted_by"] = by.id
        else:
            self.retracted.append({"the_tenant": by.tenant, "the_id": retracted, "by": by.id})

    def _count(self, told: Told, kind: str, step: int) -> None:
        room = told.tenant, told.conversation
        self.active[room] = max(self.active[room], number(told.time))
        self.events[room] += step * (kind != EventType.RETRACTED)
        self.flips[room] += step * (kind == EventType.FLIPPED)


def who(told: Told) -> str:
    """An event's holder as the forgotten are kept."""
    return keys.digest(told.tenant, told.conversation, told.holder or "", length=32)


_RETRACT = (
    update(events)
    .where(events.c.tenant == bindparam("the_tenant"), events.c.id == bindparam("the_id"))
    .values(retracted_by=bindparam("by"))
)


def recount() -> Update:
    """Count a conversation's standing events and flips anew."""
    own = and_(
        events.c.tenant == conversations.c.tenant,
        events.c.conversation == conversations.c.conversation,
        events.c.retracted_by.is_(None),
    )
    counted = select(func.count()).where(own, events.c.type != EventType.RETRACTED).scalar_subquery()
    flipped = select(func.count()).where(own, events.c.type == EventType.FLIPPED).scalar_subquery()
    return update(conversations).values(events=counted, flips=flipped)


def _in_room(tenant: str, conversation: str) -> ColumnElement[bool]:
    return and_(events.c.tenant == tenant, events.c.conversation == conversation)


def _later(one: ColumnElement[int], other: ColumnElement[int]) -> ColumnElement[int]:
    """The greater of two; SQLite and PostgreSQL name that differently."""
    return case((one > other, one), else_=other)
