"""The in-memory twin of the views."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from stream.views.port import (
    ALL,
    PAGE,
    Activity,
    Batch,
    ConversationRow,
    ConversationView,
    Entry,
    Filter,
    Headed,
    Held,
    HolderKey,
    HolderRow,
    Point,
    PointKey,
    StoredEvent,
    TargetRow,
    Told,
)
from tracker.conversation import Header
from tracker.events import EventType
from tracker.pins import find
from tracker.records import EPOCH
from tracker.stances import Stance

Room = tuple[str, str]  # tenant, conversation


class _Stored:
    """An event at its position."""

    def __init__(self, told: Told, position: int) -> None:
        self.told, self.position = told, position
        self.retracted_by: str | None = None

    def meets(self, where: Filter) -> bool:
        told = self.told
        return (
            where.conversation in {None, told.conversation}
            and where.holder in {None, told.holder}
            and where.target in {None, told.target}
            and where.trigger in {None, told.trigger}
            and (not where.types or told.type in where.types)
            and (not where.flips or told.flip)
        )

    def stands(self) -> bool:
        return self.retracted_by is None and self.told.type != EventType.RETRACTED


class MemoryViews:
    """Views in this process."""

    def __init__(self) -> None:
        self._events: dict[str, dict[int, _Stored]] = defaultdict(dict)  # by tenant and position
        self._ids: dict[str, dict[str, int]] = defaultdict(dict)
        self._latest: Counter[str] = Counter()
        self._headers: dict[Room, Header] = {}
        self._active: dict[Room, Activity] = {}
        self._states: dict[tuple[str, HolderKey], Held] = {}
        self._forgotten: dict[tuple[str, str, str], int] = {}
        self._offsets: dict[tuple[str, int], int] = {}

    async def put(self, batch: Batch) -> Mapping[str, int]:
        """As the port says."""
        before = Counter(self._latest)
        for entry in batch.entries:
            self._put(entry)
        self._offsets |= batch.offsets
        return {tenant: last for tenant, last in self._latest.items() if last > before[tenant]}

    def _put(self, entry: Entry) -> None:
        match entry:
            case Told():
                self._tell(entry)
            case Held():
                self._hold(entry)
            case Headed():
                known = self._headers.get((entry.tenant, entry.conversation))
                if known is None or entry.header.version > known.version:
                    self._headers[entry.tenant, entry.conversation] = entry.header
                self._touch(entry.tenant, entry.conversation, entry.header.newest or EPOCH)

    def _tell(self, told: Told) -> None:
        forgets = told.type == EventType.FORGOTTEN
        if not forgets and self._is_forgotten(told):
            return
        if told.id not in self._ids[told.tenant]:
            self._latest[told.tenant] += 1
            position = self._latest[told.tenant]
            self._ids[told.tenant][told.id] = position
            self._events[told.tenant][position] = _Stored(told, position)
            self._touch(told.tenant, told.conversation, told.time)
        if told.retracts in self._ids[told.tenant]:
            retracted = self._events[told.tenant][self._ids[told.tenant][told.retracts]]
            retracted.retracted_by = retracted.retracted_by or told.id
        if forgets and told.holder is not None:
            self._forget(told.tenant, told.conversation, told.holder, told.sequence or 0)

    def _is_forgotten(self, told: Told) -> bool:
        upto = self._forgotten.get((told.tenant, told.conversation, told.holder or ""))
        return upto is not None and told.sequence is not None and told.sequence < upto

    def _hold(self, held: Held) -> None:
        key = held.tenant, (held.conversation, held.holder, held.target)
        known = self._states.get(key)
        if held.state is None:
            self._states.pop(key, None)
        elif known is None or held.version > known.version:
            self._states[key] = held

    def _touch(self, tenant: str, conversation: str, time: dt.datetime) -> None:
        room = tenant, conversation
        known = self._active.get(room, Activity(EPOCH, conversation))
        self._active[room] = max(known, replace(known, active_at=time))

    async def forget(self, tenant: str, conversation: str, holder: str) -> int:
        """As the port says."""
        own = [each.told.sequence or 0 for each in self._of(tenant) if each.told.conversation == conversation]
        return self._forget(tenant, conversation, holder, max(own, default=0) + 1)

    def _forget(self, tenant: str, conversation: str, holder: str, upto: int) -> int:
        who = tenant, conversation, holder
        self._forgotten[who] = max(upto, self._forgotten.get(who, 0))
        gone = [
            each
            for each in self._of(tenant)
            if each.told.conversation == conversation and _goes(each, holder, upto)
        ]
        for each in gone:
            del self._events[tenant][each.position], self._ids[tenant][each.told.id]
        return len(gone)

    async def offsets(self, topic: str) -> Mapping[int, int]:
        """As the port says."""
        return {partition: offset for (name, partition), offset in self._offsets.items() if name == topic}

    async def recount(self) -> None:
        """As the port says; here every answer counts."""

    async def latest(self, tenant: str) -> int:
        """As the port says."""
        return self._latest[tenant]

    async def position_of(self, tenant: str, event: str) -> int | None:
        """As the port says."""
        return self._ids[tenant].get(event)

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
        found = [
            StoredEvent(each.position, each.told.id, each.told.body, each.retracted_by)
            for each in self._of(tenant)
            if each.meets(where)
            and (after is None or each.position > after)
            and (before is None or each.position < before)
        ]
        return (found if after is not None else found[::-1])[:limit]

    def _of(self, tenant: str) -> Iterable[_Stored]:
        return [*self._events[tenant].values()]  # in order of position

    async def conversations(
        self, tenant: str, *, behind: Activity | None = None, limit: int = PAGE
    ) -> list[ConversationRow]:
        """As the port says."""
        active = sorted((each for room, each in self._active.items() if room[0] == tenant), reverse=True)
        found = [each for each in active if behind is None or each < behind]
        return [self._row(tenant, each) for each in found[:limit]]

    def _row(self, tenant: str, activity: Activity) -> ConversationRow:
        standing = [
            each.told
            for each in self._of(tenant)
            if each.told.conversation == activity.conversation and each.stands()
        ]
        flips = sum(told.type == EventType.FLIPPED for told in standing)
        return ConversationRow(activity, len(standing), flips)

    async def conversation(self, tenant: str, conversation: str) -> ConversationView | None:
        """As the port says."""
        activity = self._active.get((tenant, conversation))
        if activity is None:
            return None
        counts: dict[str, Counter[Stance]] = defaultdict(Counter)
        for (owner, (room, _, target)), held in self._states.items():
            if (owner, room) == (tenant, conversation) and held.state is not None:
                counts[target][held.state.stance] += 1
        header = self._headers.get((tenant, conversation), Header())
        targets = (
            TargetRow(each.id, each.proposition, each.status, dict(counts[each.id]))
            for each in header.targets
        )
        return ConversationView(self._row(tenant, activity), tuple(targets))

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
        found = sorted(
            key
            for owner, key in self._states
            if owner == tenant
            and conversation in {None, key[0]}
            and holder in {None, key[1]}
            and (behind is None or key > behind)
        )
        return [self._holder(tenant, key) for key in found[:limit]]

    def _holder(self, tenant: str, key: HolderKey) -> HolderRow:
        state = self._states[tenant, key].state
        assert state is not None
        pin = find(self._headers.get((tenant, key[0]), Header()).pins, key[1], key[2])
        return HolderRow(
            *key, state.stance, state.turn, state.confidence, state.flips, pin.to if pin else None
        )

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
        where = Filter(conversation=conversation, holder=holder, target=target)
        found = [
            _point(each)
            for each in self._of(tenant)
            if each.meets(where) and each.told.sequence and each.told.type != EventType.RETRACTED
        ]
        found.sort(key=lambda point: point.key)
        return [point for point in found if behind is None or point.key > behind][:limit]


def _goes(each: _Stored, holder: str, upto: int) -> bool:
    """Whether an event of the conversation goes with a holder who is forgotten."""
    told = each.told
    if told.sequence is None:
        return True
    own = told.holder == holder and told.type != EventType.FORGOTTEN
    return told.sequence < upto and (own or each.retracted_by is not None)


def _point(each: _Stored) -> Point:
    told = each.told
    return Point(
        told.sequence or 0,
        each.position,
        told.time,
        told.turn,
        told.type,
        Stance(told.before or Stance.UNKNOWN),
        Stance(told.after or Stance.UNKNOWN),
        told.id,
        each.retracted_by,
    )
