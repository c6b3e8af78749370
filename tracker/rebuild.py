"""A conversation put back from the journal and the states topic, as live commits left it. Pure.

It starts from what a store still holds: nothing, or an earlier version. Where the journal has all that came
since, its entries are applied once more. Where it does not, the rows of the compacted states topic say which
states stand, and the ledger begins where the journal does.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tracker.conversation import Conversation, Header
from tracker.ledger import JournalEntry, Ledger, LedgerEntry, StateRow
from tracker.machine import StanceState
from tracker.targets import HolderStates

Course = Mapping[int, JournalEntry]  # by arrival, in order
_Pair = tuple[str, str]  # a holder, and a target
_Change = tuple[_Pair, int, StanceState | None]  # whose state, as of which version; None ends it


class Rows(msgspec.Struct, frozen=True):
    """What the states topic holds of a conversation."""

    header: Header | None = None
    states: tuple[StateRow, ...] = ()
    ended: tuple[_Pair, ...] = ()  # holder and target of tombstones


class Kept(msgspec.Struct, frozen=True):
    """What a store still holds: the conversation with the holders that `touched` names, and its ledger."""

    conversation: Conversation
    ledger: Ledger = {}

    @property
    def version(self) -> int:
        """The last arrival that it has."""
        return self.conversation.header.version


class Rebuilt(msgspec.Struct, frozen=True):
    """A conversation at a version, without text."""

    header: Header
    holders: Mapping[str, HolderStates]  # those that changed since what was kept; empty: none is left
    ledger: Ledger
    trim_before: dt.datetime | None = None  # ledger entries sent before are dropped


def in_order(entries: Iterable[JournalEntry]) -> Course:
    """By arrival. Of two with the same arrival the later one in the log counts: it was done again."""
    latest = {one.entry.arrival: one for one in entries}
    return dict(sorted(latest.items()))


def newest(rows: Rows, course: Course) -> int:
    """The highest version that the topics tell of."""
    return max(rows.header.version if rows.header else 0, *course, 0)


def touched(course: Course) -> frozenset[str]:
    """The holders whose states the entries changed."""
    return frozenset(holder for one in course.values() for (holder, _), _, _ in _changes(one))


def rebuilt(
    kept: Kept, rows: Rows, course: Course, upto: int, reach: dt.timedelta | None = None
) -> Rebuilt | None:
    """The conversation at a version above the kept one; None where the topics do not tell it any more.

    `reach`: as live commits do, entries are dropped that are older than twice that.
    """
    taken = {arrival: one for arrival, one in course.items() if kept.version < arrival <= upto}
    header = _header(rows, course, upto)
    whole = len(taken) == upto - kept.version
    holders = _followed(kept, taken) if whole else _merged(kept, rows, course, upto)
    if header is None or holders is None:
        return None
    trim_before = header.newest - 2 * reach if header.newest and reach is not None else None
    return Rebuilt(header, holders, _ledger(kept, taken, trim_before), trim_before)


def kept_after(kept: Kept, then: Rebuilt, most: int) -> Kept:
    """What a store holds after it took that, with at most so many ledger entries."""
    last = sorted(then.ledger.values(), key=lambda one: (one.sent_at, one.id))[-most:]
    conversation = msgspec.structs.replace(
        kept.conversation,
        header=then.header,
        window=(),
        holders={**kept.conversation.holders, **then.holders},
    )
    return Kept(conversation, {one.arrival: one for one in sorted(last, key=lambda one: one.arrival)})


def _header(rows: Rows, course: Course, upto: int) -> Header | None:
    if upto in course:
        return course[upto].header
    return rows.header if rows.header is not None and rows.header.version == upto else None


def _changes(one: JournalEntry) -> Iterator[_Change]:
    for moved in one.states:
        yield (moved.holder, moved.target), moved.version, moved.state
    for pair in one.forgotten:
        yield pair, one.entry.arrival, None


def _followed(kept: Kept, taken: Course) -> dict[str, dict[str, StanceState]]:
    """The states that the entries changed, from those kept."""
    before = kept.conversation.holders
    states = {holder: dict(before.get(holder, {})) for holder in sorted(touched(taken))}
    for one in taken.values():
        for (holder, target), _, state in _changes(one):
            if state is None:
                states[holder].pop(target, None)
            else:
                states[holder][target] = state
    return states


def _merged(kept: Kept, rows: Rows, course: Course, upto: int) -> dict[str, dict[str, StanceState]] | None:
    """The newest state of each row and entry; None where one is newer and what stood before it is lost."""
    known: dict[_Pair, tuple[int, StanceState | None]] = {}
    later: set[_Pair] = set()
    cut = upto < newest(rows, course)
    for pair, version, state in _told(rows, course):
        if cut and version > upto:
            later.add(pair)
        elif version >= known.get(pair, (0, None))[0]:
            known[pair] = version, state
    settled = _settled(course, upto)
    # Between an older entry and now another may be missing: the one that ended the state.
    known |= {pair: (0, None) for pair in rows.ended if pair not in settled}
    return _by_holder(kept, known) if later <= settled else None


def _by_holder(
    kept: Kept, known: Mapping[_Pair, tuple[int, StanceState | None]]
) -> dict[str, dict[str, StanceState]]:
    """The states; of whom the topics tell nothing, nothing may be left in a store that lags."""
    named = (one.holder for one in kept.ledger.values())
    states: dict[str, dict[str, StanceState]] = {holder: {} for holder in named if holder is not None}
    for (holder, target), (_, state) in known.items():
        of_holder = states.setdefault(holder, {})
        if state is not None:
            of_holder[target] = state
    return states


def _told(rows: Rows, course: Course) -> Iterator[_Change]:
    """Rows first: of the same version, the journal's word counts."""
    for row in rows.states:
        yield (row.holder, row.target), row.version, row.state
    for one in course.values():
        yield from _changes(one)


def _settled(course: Course, upto: int) -> set[_Pair]:
    """Whose states the entries up to a version tell without a gap between."""
    pairs: set[_Pair] = set()
    while upto in course:
        pairs |= {pair for pair, _, _ in _changes(course[upto])}
        upto -= 1
    return pairs


def _ledger(kept: Kept, taken: Course, trim_before: dt.datetime | None) -> dict[int, LedgerEntry]:
    ledger = dict(kept.ledger)
    for one in taken.values():
        for entry in (one.entry, *one.changed):
            if entry.arrival in ledger or trim_before is None or entry.sent_at >= trim_before:
                ledger[entry.arrival] = entry
        for arrival in ledger.keys() & set(one.gone):
            ledger[arrival] = _taken_back(ledger[arrival], nameless=one.entry.op == "erase")
    return dict(sorted(ledger.items()))


def _taken_back(entry: LedgerEntry, *, nameless: bool) -> LedgerEntry:
    """A turn that was taken back: nothing is left but its place, and after an erasure not whose it was."""
    return msgspec.structs.replace(
        entry,
        gone=True,
        observations=(),
        under=(),
        explanations=(),
        standing=(),
        silent=(),
        word=None,
        holder=None if nameless else entry.holder,
    )


def arrived(kept: Kept, then: Rebuilt) -> tuple[str, ...]:
    """The turns that kept corrections waited for, and that have come since."""
    waited = ((arrival, one.turn) for arrival, one in kept.ledger.items() if one.waits)
    return tuple(turn for arrival, turn in waited if turn is not None and not then.ledger[arrival].waits)
