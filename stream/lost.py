"""Journal entries that the store lacks, gathered from the journal's end backwards."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import itemgetter

from stream.store.port import ConversationKey
from tracker.ledger import JournalEntry

Known = Mapping[
    ConversationKey, tuple[int, frozenset[str]]
]  # the store's version, and which records it applied


class Lost:
    """What is lacking, by conversation and arrival; of two entries for one place the later one counts."""

    def __init__(self) -> None:
        self._lacking: dict[ConversationKey, dict[int, tuple[int, JournalEntry]]] = {}  # with offsets
        self._seen: dict[ConversationKey, set[int]] = {}  # arrivals beyond what is stored, lacking or not
        self._stored: dict[ConversationKey, int] = {}
        self._ids: set[tuple[ConversationKey, str]] = set()

    def __len__(self) -> int:
        return sum(map(len, self._lacking.values()))

    def add(self, stretch: Mapping[int, JournalEntry], known: Known) -> bool:
        """Take a stretch of entries by offset, before those taken until now; whether anything is lacking."""
        before = len(self)
        for offset, entry in sorted(stretch.items(), reverse=True):
            owner = owner_of(entry)
            version, applied = known[owner]
            if entry.header.version > version:  # else it is there, though a trimmed ledger may not know it
                self._stored.setdefault(owner, version)
                self._seen.setdefault(owner, set()).add(entry.entry.arrival)
                if entry.entry.id not in applied:
                    self._take(owner, offset, entry)
        return len(self) > before

    def _take(self, owner: ConversationKey, offset: int, entry: JournalEntry) -> None:
        if (owner, entry.entry.id) not in self._ids:
            self._ids.add((owner, entry.entry.id))
            self._lacking.setdefault(owner, {}).setdefault(entry.entry.arrival, (offset, entry))

    @property
    def gaps(self) -> int:
        """How many arrivals are missing between what is stored and what is lacking."""
        return sum(
            max(0, max(lacking) - self._stored[owner] - len(self._upto(owner, max(lacking))))
            for owner, lacking in self._lacking.items()
        )

    def _upto(self, owner: ConversationKey, last: int) -> set[int]:
        return {arrival for arrival in self._seen[owner] if arrival <= last}

    def chunks(self, most: int) -> Iterator[list[JournalEntry]]:
        """In the order of the log, each conversation in its own: where it breaks off, the end is left."""
        placed: list[tuple[int, int, JournalEntry]] = []
        for of_it in self._lacking.values():
            latest = 0
            for arrival, (offset, entry) in sorted(of_it.items()):
                latest = max(latest, offset)
                placed.append((latest, arrival, entry))
        placed.sort(key=itemgetter(0, 1))
        for start in range(0, len(placed), most):
            yield [entry for _, _, entry in placed[start : start + most]]


def waves(entries: Sequence[JournalEntry]) -> Iterator[list[JournalEntry]]:
    """The first entry of every conversation, then the second of each, and so on."""
    chains: dict[ConversationKey, list[JournalEntry]] = {}
    for entry in entries:
        chains.setdefault(owner_of(entry), []).append(entry)
    for wave in zip_longest(*chains.values()):
        yield [entry for entry in wave if entry is not None]


def owner_of(entry: JournalEntry) -> ConversationKey:
    """Whose entry it is."""
    return ConversationKey(entry.tenant, entry.conversation)
