"""A conversation put back from the journal and the states topic, as live commits left it. Pure.

It starts from what a store still holds: nothing, or an earlier version. Where the journal has all that came
since, its entries are applied once more. Where it does not, the rows of the compacted states topic say which
states stand, and the ledger begins where the journal does.
"""

import datetime as dt
from collections.abc import Iterable, Mapping

import msgspec

from tracker.context import Window
from tracker.conversation import Conversation, Header
from tracker.ledger import JournalEntry, Ledger, LedgerEntry
from tracker.machine import StanceState
from tracker.merging import Merged, changes
from tracker.targets import HolderStates

Course = Mapping[int, JournalEntry]  # by arrival, in order


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


def touched(course: Course) -> frozenset[str]:
    """The holders whose states the entries changed."""
    return frozenset(holder for one in course.values() for (holder, _), _, _ in changes(one))


def rebuilt(
    kept: Kept, taken: Course, upto: int, merged: Merged | None = None, reach: dt.timedelta | None = None
) -> Rebuilt:
    """What is kept, with the entries that came since, up to a version.

    `merged`: what the conversation comes to in the end, where not all entries that lead there are known; the
    states are then those of the end, and on the way there nobody's. `reach`: as live commits do, entries are
    dropped that are older than twice that.
    """
    if merged is None:
        header = end = taken[upto].header
        holders: Mapping[str, HolderStates] = _followed(kept, taken)
    else:
        end = merged.header
        header, holders = (end, merged.holders) if end.version == upto else (taken[upto].header, {})
    trim_before = end.newest - 2 * reach if end.newest and reach is not None else None
    return Rebuilt(header, holders, _ledger(kept, taken, trim_before), trim_before)


def kept_after(kept: Kept, then: Rebuilt, most: int, window: Window) -> Kept:
    """What a store holds after it took that with this window, and at most so many ledger entries."""
    last = sorted(then.ledger.values(), key=lambda one: (one.sent_at, one.id))[-most:]
    conversation = msgspec.structs.replace(
        kept.conversation,
        header=then.header,
        window=window,
        holders={**kept.conversation.holders, **then.holders},
    )
    return Kept(conversation, {one.arrival: one for one in sorted(last, key=lambda one: one.arrival)})


def _followed(kept: Kept, taken: Course) -> dict[str, dict[str, StanceState]]:
    """The states that the entries changed, from those kept."""
    before = kept.conversation.holders
    states = {holder: dict(before.get(holder, {})) for holder in sorted(touched(taken))}
    for one in taken.values():
        for (holder, target), _, state in changes(one):
            if state is None:
                states[holder].pop(target, None)
            else:
                states[holder][target] = state
    return states


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
