"""What a rebuild commits of a conversation: all at once, or of a very long one step by step."""

import datetime as dt
from collections.abc import Iterator

from stream.entries import place_of
from stream.scratch import Scratch
from stream.store.port import LEDGER_LIMIT, Commit, ConversationKey
from stream.unfinished import record_of
from tracker import rebuild, texts
from tracker.context import Window
from tracker.ledger import Ledger
from tracker.rebuild import Kept, Rebuilt, Rows
from tracker.records import Record

STEP = 5000  # entries in one commit, where the journal has all that came since


class Steps:
    """Makes commits of what the scratch file holds."""

    def __init__(self, scratch: Scratch, turns: str, reach: dt.timedelta | None) -> None:
        """`turns`: the full name of the turns topic; `reach`: of a ledger that is trimmed."""
        self._scratch, self._turns, self._reach = scratch, turns, reach

    def tells(self, room: bytes, kept: Kept, version: int) -> bool:
        """Whether the topics still tell what a conversation was at a version."""
        if version <= kept.version or self._whole(room, kept.version, version):
            return True
        course = self._scratch.course(room, 0, self._scratch.newest(room))
        return rebuild.rebuilt(kept, self._scratch.rows(room), course, version) is not None

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

    def commits(self, room: bytes, kept: Kept, upto: int) -> Iterator[tuple[Commit, int]]:
        """The commits in order, each with how many turns of its window are without text.

        All but the last one have no window.
        """

        def record(arrival: int) -> Record | None:
            return record_of(self._scratch, self._scratch.entry(room, arrival), self._turns)

        for before, then in self._of(room, kept, upto):
            shown = texts.shown(before, then) if then.header.version == upto else ()
            window = texts.window(shown, record)
            ledger = texts.ledger(before, then, record)
            yield _commit(before, then, ledger, window), len(shown) - len(window)

    def _of(self, room: bytes, kept: Kept, upto: int) -> Iterator[tuple[Kept, Rebuilt]]:
        """What is kept, and what comes of it, until the version is reached."""
        while kept.version < upto:
            whole = self._whole(room, kept.version, upto)
            to = min(upto, kept.version + STEP) if whole else upto
            rows = Rows() if whole else self._scratch.rows(room)
            after, end = (kept.version, to) if whole else (0, self._scratch.newest(room))
            then = rebuild.rebuilt(kept, rows, self._scratch.course(room, after, end), to, self._reach)
            assert then is not None, "a version that `tells` denied"
            yield kept, then
            kept = rebuild.kept_after(kept, then, LEDGER_LIMIT)

    def _whole(self, room: bytes, after: int, upto: int) -> bool:
        return self._scratch.count(room, after, upto) == upto - after


def _commit(kept: Kept, then: Rebuilt, ledger: Ledger, window: Window) -> Commit:
    changed = (one for arrival, one in ledger.items() if arrival <= kept.version)
    return Commit(
        key=ConversationKey(kept.conversation.tenant, kept.conversation.name),
        expected=kept.version,
        header=then.header,
        window=window,
        holders={holder: states for holder, states in then.holders.items() if states},
        forgotten=[holder for holder, states in then.holders.items() if not states],
        arrived=rebuild.arrived(kept, then),
        entries=[one for arrival, one in ledger.items() if arrival > kept.version],
        changed=[one for one in changed if one != kept.ledger.get(one.arrival)],
        outbox={},
        trim_before=then.trim_before,
    )
