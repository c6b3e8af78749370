"""A conversation as a stream applied it, what it was at each version, and what its topics hold of it."""

from collections.abc import Sequence

import msgspec

from tests.tracker.correcting import Room
from tests.tracker.driver import Marked, empty
from tracker.ledger import HolderState, JournalEntry, StateRow
from tracker.merging import Rows
from tracker.rebuild import Kept
from tracker.records import Record, record_id


class Live:
    """A conversation as a stream applied it, and what it was at each version."""

    def __init__(self, records: Sequence[Record]) -> None:
        room = Room(reader=Marked())
        self.records = {record_id(record): record for record in reversed(records)}
        self.kept = [Kept(empty())]
        for record in records:
            room.take(record)
            if len(room.outcomes) == len(self.kept):
                self.kept.append(Kept(room.conversation, dict(sorted(room.ledger.items()))))
        self.outcomes = room.outcomes
        self.newest = len(self.outcomes)

    @property
    def journal(self) -> list[JournalEntry]:
        """What its topic holds, through JSON."""
        return [again(outcome.journal) for outcome in self.outcomes]

    def rows(self, header: int | None = None) -> Rows:
        """What the compacted topic holds at the end; the header's row is of that version."""
        states: dict[tuple[str, str], StateRow | None] = {}
        for outcome in self.outcomes:
            rows = [row_of(outcome.journal, moved) for moved in outcome.states]
            states |= {(row.holder, row.target): row for row in rows}
            states |= dict.fromkeys(outcome.forgotten)
        version = self.newest if header is None else header
        return Rows(
            self.kept[version].conversation.header if version else None,
            tuple(row for row in states.values() if row is not None),
            tuple(pair for pair, row in states.items() if row is None),
        )

    def record(self, arrival: int) -> Record:
        return self.records[self.outcomes[arrival - 1].entry.id]


def row_of(journal: JournalEntry, moved: HolderState) -> StateRow:
    owner = {"tenant": journal.tenant, "run": journal.run, "conversation": journal.conversation}
    return StateRow(**owner, **msgspec.structs.asdict(moved))


def again(journal: JournalEntry) -> JournalEntry:
    return msgspec.json.decode(msgspec.json.encode(journal), type=JournalEntry)
