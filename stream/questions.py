"""Where a replay waits for the Cartographer, whose finds come back through the log, behind what went ahead.

In a live room that takes a breath, in a replay the whole file would be ahead of it. So a conversation's turns
wait where it may be asked, until all that was sent is folded; others' go on until one of these comes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from tracker.records import CreateTurn, Record

TURNS = 4  # the first questions come at turns 4, 8 and 12; later ones, about a drift, at most 3 turns late


class Questions:
    """Counts each conversation's turns, and cuts records where an answer may be on its way."""

    def __init__(self) -> None:
        self._turns: Counter[tuple[str, str]] = Counter()
        self._asked: set[tuple[str, str]] = set()

    def cut(self, records: Sequence[Record]) -> Iterator[list[Record]]:
        """The records in pieces, in order; before each but the first, what went before is to be folded."""
        piece: list[Record] = []
        for record in records:
            if (record.tenant, record.conversation) in self._asked:
                self._asked.clear()
                yield piece
                piece = []
            piece.append(record)
            self.sent(record)
        yield piece

    def sent(self, record: Record) -> None:
        """It went ahead, now or before the replay was stopped."""
        if isinstance(record, CreateTurn):
            name = record.tenant, record.conversation
            self._turns[name] += 1
            if self._turns[name] % TURNS == 0:
                self._asked.add(name)
