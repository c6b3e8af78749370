"""The store in memory: it promises what the Redis store promises, and ends with its process."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from stream.store.codec import TRIM_LIMIT, fields, milliseconds, record_field, turn_field
from stream.store.port import Commit, ConversationKey, Loaded, Message, Need
from tracker.context import Window
from tracker.conversation import Conversation, Header
from tracker.ledger import LedgerEntry
from tracker.targets import HolderStates


@dataclass
class _Kept:
    """All that is known of one conversation."""

    header: Header = Header()
    window: Window = ()
    holders: dict[str, HolderStates] = field(default_factory=dict)
    ledger: dict[str, LedgerEntry] = field(default_factory=dict)  # by record field and by turn field
    outbox: dict[int, tuple[Message, ...]] = field(default_factory=dict)

    def take(self, commit: Commit) -> bool:
        """Whether the commit is taken, now or before."""
        seen = [self.ledger.get(record_field(entry.id)) for entry in commit.entries]
        if commit.expected != self.header.version or any(seen):
            return self._taken(commit, seen)
        self._trim(commit)
        self.header = commit.header
        self.window = commit.window
        self.holders |= {holder: dict(states) for holder, states in commit.holders.items()}
        self.ledger |= {name: entry for entry in commit.entries for name in fields(entry)}
        self.outbox |= {arrival: tuple(messages) for arrival, messages in commit.outbox.items()}
        return True

    def _taken(self, commit: Commit, seen: Sequence[LedgerEntry | None]) -> bool:
        same = commit.header == self.header and list(commit.entries) == seen
        return same and all(self.outbox.get(arrival, sent) == sent for arrival, sent in commit.outbox.items())

    def _trim(self, commit: Commit) -> None:
        if commit.trim_before is None:
            return
        bound = milliseconds(commit.trim_before)
        ages = ((milliseconds(entry.sent_at), name) for name, entry in self.ledger.items())
        for _, name in sorted(age for age in ages if age[0] < bound)[:TRIM_LIMIT]:
            del self.ledger[name]


class MemoryStore:
    """A run's conversations in memory, for tests and for a run of one process."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._kept: dict[ConversationKey, _Kept] = {}

    async def load(self, needs: Sequence[Need]) -> list[Loaded]:
        """What the needs ask for, in order."""
        return [self._loaded(need) for need in needs]

    async def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Per commit, whether it was taken."""
        return [self._kept.setdefault(commit.key, _Kept()).take(commit) for commit in commits]

    async def delivered(self, arrivals: Mapping[ConversationKey, Collection[int]]) -> None:
        """Empty the outboxes of what was delivered."""
        for key, sent in arrivals.items():
            outbox = self._kept.get(key, _Kept()).outbox
            for arrival in sent:
                outbox.pop(arrival, None)

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
        )
