"""A conversation's states where its journal has gaps: the compacted states topic tells the rest. Pure.

Of each state the newest word counts, be it a row or an entry. What an older version was is told only as far
as what changed since had been told just before.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from tracker.conversation import Header
from tracker.ledger import JournalEntry, StateRow
from tracker.machine import StanceState
from tracker.targets import HolderStates

Pair = tuple[str, str]  # a holder, and a target
Change = tuple[Pair, int, StanceState | None]  # whose state, as of which version; None ends it


class Rows(msgspec.Struct, frozen=True):
    """What the states topic holds of a conversation."""

    header: Header | None = None
    states: tuple[StateRow, ...] = ()
    ended: tuple[Pair, ...] = ()  # holder and target of tombstones


class Merged(msgspec.Struct, frozen=True):
    """What a conversation is at a version, but for its ledger."""

    header: Header
    holders: Mapping[str, HolderStates]  # empty: none is left


def changes(one: JournalEntry) -> Iterator[Change]:
    """Whose states an entry changed."""
    for moved in one.states:
        yield (moved.holder, moved.target), moved.version, moved.state
    for pair in one.forgotten:
        yield pair, one.entry.arrival, None


def merged(
    rows: Rows, course: Iterable[JournalEntry], upto: int, newest: int, named: Collection[str] = ()
) -> Merged | None:
    """The newest state of each row and entry; None where one is newer than `upto` and the one before is lost.

    `course`: all entries there are, by arrival. `newest`: the highest version that the topics tell of.
    `named`: holders of whom nothing may be left in a store that lags, if the topics tell nothing of them.
    """
    merging = _Merging(rows, upto, cut=upto < newest)
    for one in course:
        merging.take(one)
    if merging.header is None or not merging.later <= merging.settled:
        return None
    return Merged(merging.header, _by_holder(named, merging.known(rows.ended)))


class _Merging:
    """States as rows and entries told until now, one entry at a time: a journal may be long."""

    def __init__(self, rows: Rows, upto: int, *, cut: bool) -> None:
        self._upto, self._cut = upto, cut
        self._known: dict[Pair, tuple[int, StanceState | None]] = {}
        self._last, self._told = 0, set[Pair]()
        self.header = rows.header if rows.header is not None and rows.header.version == upto else None
        self.later: set[Pair] = set()  # whose states are told as of a newer version
        # Rows first: of the same version, the journal's word counts.
        for row in rows.states:
            self._change((row.holder, row.target), row.version, row.state)

    def take(self, one: JournalEntry) -> None:
        """The next entry by arrival."""
        arrival, told = one.entry.arrival, list(changes(one))
        if arrival <= self._upto:
            if arrival != self._last + 1:
                self._told.clear()  # in the gap they may have changed unseen
            self._told |= {pair for pair, _, _ in told}
            self._last = arrival
        if arrival == self._upto:
            self.header = one.header
        for change in told:
            self._change(*change)

    def _change(self, pair: Pair, version: int, state: StanceState | None) -> None:
        if self._cut and version > self._upto:
            self.later.add(pair)
        elif version >= self._known.get(pair, (0, None))[0]:
            self._known[pair] = version, state

    @property
    def settled(self) -> set[Pair]:
        """Whose states the entries up to the version tell without a gap between."""
        return self._told if self._last == self._upto else set()

    def known(self, ended: Iterable[Pair]) -> dict[Pair, StanceState | None]:
        """The states; those in `ended` have tombstones."""
        states = {pair: state for pair, (_, state) in self._known.items()}
        # Between an older entry and now another may be missing: the one that ended the state.
        return states | dict.fromkeys(pair for pair in ended if pair not in self.settled)


def _by_holder(
    named: Collection[str], known: Mapping[Pair, StanceState | None]
) -> dict[str, dict[str, StanceState]]:
    states: dict[str, dict[str, StanceState]] = {holder: {} for holder in named}
    for (holder, target), state in known.items():
        of_holder = states.setdefault(holder, {})
        if state is not None:
            of_holder[target] = state
    return states
