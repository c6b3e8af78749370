"""What a rebuild commits of a conversation: all at once, or of a very long one step by step.

Where the journal has all that came since, each step is a version that the conversation had. Where it has not,
only the last step is: what stands before it puts ledger entries and states there, and leaves version, window
and header as they are. Whatever ends a rebuild between them, the conversation has its old version still, the
agents' restorer finds a gap behind it and refuses to go on, and another rebuild completes it.
"""

import datetime as dt
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import msgspec

from stream.entries import place_of
from stream.scratch import Scratch
from stream.store.port import LEDGER_LIMIT, Commit, ConversationKey
from stream.unfinished import record_of
from tracker import merging, rebuild, texts
from tracker.context import Window
from tracker.ledger import Ledger
from tracker.merging import Merged
from tracker.rebuild import Kept, Rebuilt
from tracker.records import Record

STEP = 5000  # entries, or holders, in one commit


class Step(NamedTuple):
    """A commit of a conversation, and how many turns of its window are without text."""

    commit: Commit
    textless: int
    merged: bool  # the journal has gaps: some of its entries may stand there, of a rebuild that was ended

    @property
    def still(self) -> bool:
        """Whether the conversation keeps its version."""
        return self.commit.header.version == self.commit.expected

    def without(self, applied: Collection[str]) -> Commit:
        """The commit for a store that has these records already, as an earlier step or this one left them."""
        there = [one for one in self.commit.entries if one.id in applied]
        came = [one.turn for one in there if one.turn is not None and not one.waits]
        return msgspec.structs.replace(
            self.commit,
            entries=[one for one in self.commit.entries if one.id not in applied],
            changed=[*self.commit.changed, *there],
            arrived=[*self.commit.arrived, *came],
        )


class Steps:
    """Makes commits of what the scratch file holds."""

    def __init__(self, scratch: Scratch, turns: str, reach: dt.timedelta | None) -> None:
        """`turns`: the full name of the turns topic; `reach`: of a ledger that is trimmed."""
        self._scratch, self._turns, self._reach = scratch, turns, reach

    def tells(self, room: bytes, kept: Kept, version: int) -> bool:
        """Whether the topics still tell what a conversation was at a version."""
        whole = version <= kept.version or self._whole(room, kept.version, version)
        return whole or self._merged(room, kept, version) is not None

    def touched(self, room: bytes, kept: Kept, upto: int) -> frozenset[str]:
        """The holders whose states change between what is kept and a version."""
        holders: set[str] = set()
        for after in range(kept.version, upto, STEP):
            holders |= rebuild.touched(self._scratch.course(room, after, min(upto, after + STEP)))
        return frozenset(holders)

    def want(self, room: bytes, kept: Kept, upto: int) -> None:
        """Have the records looked up whose text is needed."""
        for before, then in self._of(room, kept, upto):
            last = then.header.version == upto
            for arrival in texts.needed(before, then) if last else texts.waiting(before, then):
                entry = self._scratch.entry(room, arrival)
                place = place_of(entry.source, self._turns) if entry is not None else None
                self._scratch.want([] if place is None else [place])

    def commits(self, room: bytes, kept: Kept, upto: int) -> Iterator[Step]:
        """The commits in order; only the last one puts texts into the window."""

        def record(arrival: int) -> Record | None:
            return record_of(self._scratch, self._scratch.entry(room, arrival), self._turns)

        merged = not self._whole(room, kept.version, upto)
        for before, then in self._of(room, kept, upto):
            last = then.header.version == upto
            shown = texts.shown(before, then) if last else ()
            window = texts.window(shown, record) if last else _seen(before, then)
            ledger = texts.ledger(before, then, record)
            commit = _commit(kept if merged else before, before, then, ledger, window)
            *more, commit = _parted(commit) if merged else [commit]
            yield from (Step(_unmoved(one, kept), 0, merged) for one in more)
            at = commit if last or not merged else _unmoved(commit, kept)
            yield Step(at, len(shown) - len(window) if last else 0, merged)

    def _of(self, room: bytes, kept: Kept, upto: int) -> Iterator[tuple[Kept, Rebuilt]]:
        """What is kept, and what comes of it, until the version is reached."""
        merged = None
        if not self._whole(room, kept.version, upto):
            merged = self._merged(room, kept, upto)
            assert merged is not None, "a version that `tells` denied"
        while kept.version < upto:
            to = self._scratch.reached(room, kept.version, upto, STEP)
            taken = self._scratch.course(room, kept.version, to)
            then = rebuild.rebuilt(kept, taken, to, merged, self._reach)
            yield kept, then
            kept = rebuild.kept_after(kept, then, LEDGER_LIMIT, _seen(kept, then))

    def _merged(self, room: bytes, kept: Kept, upto: int) -> Merged | None:
        named = {one.holder for one in kept.ledger.values() if one.holder is not None}
        rows, newest = self._scratch.rows(room), self._scratch.newest(room)
        return merging.merged(rows, self._scratch.entries(room), upto, newest, named)

    def _whole(self, room: bytes, after: int, upto: int) -> bool:
        return self._scratch.count(room, after, upto) == upto - after


def _seen(before: Kept, then: Rebuilt) -> Window:
    """The window as far as the store shows it still."""
    return texts.window(texts.shown(before, then), lambda arrival: None)


def _commit(base: Kept, before: Kept, then: Rebuilt, ledger: Ledger, window: Window) -> Commit:
    """What comes of what was before, for a store that holds `base`."""
    new = [one for at, one in ledger.items() if at > base.version and at not in before.ledger]
    old = [one for at, one in ledger.items() if at <= base.version or at in before.ledger]
    return Commit(
        key=ConversationKey(base.conversation.tenant, base.conversation.name),
        expected=base.version,
        header=then.header,
        window=window,
        holders={holder: states for holder, states in then.holders.items() if states},
        forgotten=[holder for holder, states in then.holders.items() if not states],
        arrived=rebuild.arrived(before, then),
        entries=new,
        changed=[one for one in old if one != before.ledger.get(one.arrival)],
        outbox={},
        trim_before=then.trim_before,
    )


def _parted(commit: Commit) -> list[Commit]:
    """The same, with a bounded number of holders in each; the last one has all else."""
    names = [*commit.holders, *commit.forgotten]
    parts = [names[start : start + STEP] for start in range(0, len(names), STEP)] or [names]
    states = [_of_holders(commit, part) for part in parts]
    nothing = {"entries": (), "changed": (), "arrived": ()}
    more = [msgspec.structs.replace(commit, **of_it, **nothing) for of_it in states[:-1]]
    return [*more, msgspec.structs.replace(commit, **states[-1])]


def _of_holders(commit: Commit, names: list[str]) -> dict[str, Any]:
    holders = {name: commit.holders[name] for name in names if name in commit.holders}
    return {"holders": holders, "forgotten": [name for name in names if name not in holders]}


def _unmoved(commit: Commit, kept: Kept) -> Commit:
    """The same, but that the conversation keeps its version, and its window."""
    was = kept.conversation
    return msgspec.structs.replace(commit, header=was.header, window=was.window)
