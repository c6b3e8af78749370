"""The state store's port: one round trip to load a batch's conversations, one atomic commit each."""

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from tracker.context import Window
from tracker.conversation import Conversation, Header
from tracker.ledger import Ledger, LedgerEntry
from tracker.targets import HolderStates

LEDGER_LIMIT = 10_000  # entries that are loaded of a ledger


class StoreUnavailable(Exception):
    """The store does not answer or refuses writes now: pause and try again, refuse nothing."""


class StoreReplaced(StoreUnavailable):
    """Another server answers than before, or the same one started anew: it may lack what was committed."""


class ConversationKey(msgspec.Struct, frozen=True, order=True):
    """Which conversation of the store's run."""

    tenant: str
    name: str


class Need(msgspec.Struct, frozen=True):
    """What a batch needs of one conversation: only these holders, and whether these were applied."""

    key: ConversationKey
    holders: frozenset[str] = frozenset()
    records: frozenset[str] = frozenset()  # record ids
    turns: frozenset[str] = frozenset()  # turn ids


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Something to be sent: the topic's short name (journal, states, stances, flips, turns), key and value.

    A None value is a tombstone.
    """

    topic: str
    key: bytes | None
    value: bytes | None


Outbox = Mapping[int, tuple[Message, ...]]  # by arrival, in order of arrival


class Loaded(msgspec.Struct, frozen=True):
    """A conversation as stored (a fresh one at version 0 where nothing is), and what was asked of it."""

    conversation: Conversation
    applied: frozenset[str]  # those of Need.records that were applied
    created: frozenset[str]  # those of Need.turns that a create was applied for
    outbox: Outbox  # committed but not yet known to be delivered
    awaited: frozenset[str] = frozenset()  # those of Need.turns that a correction waits for


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """All that a batch changed in one conversation; taken whole or not at all."""

    key: ConversationKey
    expected: int  # the version that was loaded
    header: Header
    window: Window
    holders: Mapping[str, HolderStates]  # changed ones only
    forgotten: Sequence[str] = ()  # holders of whose states none is left
    arrived: Sequence[str] = ()  # turns that corrections waited for until these records
    entries: Sequence[LedgerEntry]  # of the records applied, in order of arrival
    changed: Sequence[LedgerEntry] = ()  # entries of earlier commits, as these records leave them
    outbox: Outbox  # of the same records
    trim_before: dt.datetime | None = (
        None  # ledger entries sent before are dropped, a bounded number a commit
    )


@runtime_checkable
class Store(Protocol):
    """Where a run's conversations live. A call raises StoreUnavailable where the store does not answer.

    It raises StoreReplaced where what was committed may be gone, until `accept` is called.
    """

    async def load(self, needs: Sequence[Need]) -> list[Loaded]:
        """What the needs ask for, in order; one round trip."""
        ...

    async def ledgers(self, keys: Sequence[ConversationKey]) -> list[Ledger]:
        """The conversations' ledgers by arrival, in order; one round trip.

        Each as far back as it reaches, and at most the last LEDGER_LIMIT entries by sent_at.
        """
        ...

    async def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Per commit, whether it was taken: not if the version moved or one of its records is applied.

        Atomic for each conversation; one round trip for all. Repeating the commit that was taken last (its
        reply may be lost) changes nothing and is True, so that the model's work is not done again.
        """
        ...

    async def delivered(self, arrivals: Mapping[ConversationKey, Collection[int]]) -> None:
        """Empty the outboxes of what was delivered; what is gone already is no error."""
        ...

    async def mark(self, *, rebuilding: bool) -> None:
        """Keep that a rebuild began, or that it came to its end."""
        ...

    async def marked(self) -> bool:
        """Whether a rebuild began that did not come to its end."""
        ...

    async def ping(self) -> None:
        """Return if it answers."""
        ...

    def accept(self) -> None:
        """Go on with the store as it is: what it lacks will be put back."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...
