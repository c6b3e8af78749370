"""The store in memory: it promises what the Redis store promises, and ends with its process."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from stream.store.codec import (
    TRIM_LIMIT,
    gone_fields,
    milliseconds,
    record_field,
    turn_field,
    turn_fields,
    waiting_field,
)
from stream.store.port import LEDGER_LIMIT, Commit, ConversationKey, Loaded, Message, Need
from tracker.context import Window
from tracker.conversation import Conversation, Header
from tracker.ledger import Ledger, LedgerEntry
from tracker.targets import HolderStates


class _Kept:
    """All that is known of one conversation."""

    def __init__(self) -> None:
        self.header = Header()
        self.window: Window = ()
        self.holders: dict[str, HolderStates] = {}
        self.ledger: dict[str, LedgerEntry] = {}  # by record field and by turn field
        self.outbox: dict[int, tuple[Message, ...]] = {}

    def take(self, commit: Commit) -> bool:
        """Whether the commit is taken, now or before."""
        stored = [self.ledger.get(record_field(entry.id)) for entry in commit.entries]
        if commit.expected != self.header.version or any(stored):
            return self._taken(commit, stored)
        self._trim(commit)
        self.header = commit.header
        self.window = commit.window
        self.holders.update((holder, dict(states)) for holder, states in commit.holders.items())
        self.ledger.update((field, entry) for entry in commit.entries for field in _fields(entry))
        changed = ((record_field(entry.id), entry) for entry in commit.changed)
        self.ledger.update((field, entry) for field, entry in changed if field in self.ledger)
        for part, field in gone_fields(commit):
            (self.holders if part == "states" else self.ledger).pop(field, None)
        self.outbox.update((arrival, tuple(sent)) for arrival, sent in commit.outbox.items())
        return True

    def last(self) -> Ledger:
        """The ledger as far as it is loaded: of one time, as Redis does, the greatest ids."""
        entries = [entry for field, entry in self.ledger.items() if field == record_field(entry.id)]
        newest = sorted(entries, key=lambda entry: (milliseconds(entry.sent_at), entry.id.encode()))
        return {entry.arrival: entry for entry in sorted(newest[-LEDGER_LIMIT:], key=_arrival)}

    def _taken(self, commit: Commit, stored: Sequence[LedgerEntry | None]) -> bool:
        same = commit.header == self.header and list(commit.entries) == stored
        return same and all(self.outbox.get(arrival, sent) == sent for arrival, sent in commit.outbox.items())

    def _trim(self, commit: Commit) -> None:
        if commit.trim_before is None:
            return
        before = milliseconds(commit.trim_before)
        ages = ((milliseconds(entry.sent_at), field) for field, entry in self.ledger.items())
        for _, field in sorted(age for age in ages if age[0] < before)[:TRIM_LIMIT]:
            del self.ledger[field]


def _arrival(entry: LedgerEntry) -> int:
    return entry.arrival


def _fields(entry: LedgerEntry) -> Iterator[str]:
    yield record_field(entry.id)
    yield from turn_fields(entry)


class MemoryStore:
    """A run's conversations in memory, for tests and for a run of one process."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._kept: dict[ConversationKey, _Kept] = {}
        self._marked = False

    async def load(self, needs: Sequence[Need]) -> list[Loaded]:
        """What the needs ask for, in order."""
        return [self._loaded(need) for need in needs]

    async def ledgers(self, keys: Sequence[ConversationKey]) -> list[Ledger]:
        """The last entries by sent_at, by arrival."""
        return [self._kept.get(key, _Kept()).last() for key in keys]

    async def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Per commit, whether it was taken."""
        return [self._kept.setdefault(commit.key, _Kept()).take(commit) for commit in commits]

    async def delivered(self, arrivals: Mapping[ConversationKey, Collection[int]]) -> None:
        """Empty the outboxes of what was delivered."""
        for key, sent in arrivals.items():
            outbox = self._kept.get(key, _Kept()).outbox
            for arrival in sent:
                outbox.pop(arrival, None)

    async def mark(self, *, rebuilding: bool) -> None:
        """Keep that a rebuild began, or that it came to its end."""
        self._marked = rebuilding

    async def marked(self) -> bool:
        """Whether a rebuild began that did not come to its end."""
        return self._marked

    async def ping(self) -> None:
        """Memory answers."""

    def accept(self) -> None:
        """Nothing to accept: memory is not replaced."""

    async def close(self) -> None:
        """Keep everything: a store in memory holds no connections."""

    def _loaded(self, need: Need) -> Loaded:
        kept = self._kept.get(need.key, _Kept())
        holders = {name: states for name, states in kept.holders.items() if name in need.holders}
        return Loaded(
            Conversation(need.key.tenant, self._run, need.key.name, kept.header, kept.window, holders),
            frozenset(record for record in need.records if record_field(record) in kept.ledger),
            frozenset(turn for turn in need.turns if turn_field(turn) in kept.ledger),
            dict(sorted(kept.outbox.items())),
            frozenset(turn for turn in need.turns if waiting_field(turn) in kept.ledger),
        )
