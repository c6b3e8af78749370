"""The views' port: what is put there from the topics, and what a tenant may ask.

Every question names its tenant and is answered from that tenant's rows alone. Lists come in pages: a page
begins behind the last thing of the one before (a key, never a count), so none is left out or shown twice
while others come in.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from tracker.conversation import Header
from tracker.machine import StanceState
from tracker.records import TargetStatus
from tracker.stances import Stance

PAGE = 100  # rows of a page, unless told
LONGEST_PAGE = 1000

Offsets = Mapping[tuple[str, int], int]  # by topic and partition: the next offset to read


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """An event or an alert, as far as views look into it, with the bytes that the topic holds."""

    tenant: str
    id: str
    conversation: str
    type: str
    time: dt.datetime
    body: bytes
    sequence: int | None = None  # alerts have none
    holder: str | None = None
    target: str | None = None
    turn: str | None = None
    trigger: str | None = None  # its kind
    before: str | None = None
    after: str | None = None
    flip: bool = False  # it stands in the flips topic, too: a flip, or the retraction of one
    retracts: str | None = None


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A state as the states topic has it; without one it is gone."""

    tenant: str
    conversation: str
    holder: str
    target: str
    state: StanceState | None
    version: int = 0


class Headed(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation's header as the states topic has it."""

    tenant: str
    conversation: str
    header: Header


Entry = Told | Held | Headed


class Batch(msgspec.Struct, frozen=True):
    """What was read, in the order of each partition, and where its reader goes on."""

    entries: Sequence[Entry] = ()
    offsets: Offsets = {}


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events; what is left out holds for all. `trigger` is a kind, `types` are CloudEvents types."""

    conversation: str | None = None
    holder: str | None = None
    target: str | None = None
    trigger: str | None = None
    types: frozenset[str] = frozenset()
    flips: bool = False  # those of the flips topic alone


ALL = Filter()


class StoredEvent(msgspec.Struct, frozen=True):
    """An event as the topic has it, at its position."""

    position: int
    id: str
    body: bytes
    retracted_by: str | None = None  # the id of the retraction


class Activity(msgspec.Struct, frozen=True, order=True):
    """Where a conversation stands among all; a page of the latest active begins behind one."""

    active_at: dt.datetime
    conversation: str


class ConversationRow(msgspec.Struct, frozen=True):
    """A conversation: when it was last active, and how many events and flips of it stand."""

    activity: Activity
    events: int
    flips: int

    @property
    def conversation(self) -> str:
        """Its name."""
        return self.activity.conversation


class TargetRow(msgspec.Struct, frozen=True):
    """A target of a conversation, and how many of its holders have which stance.

    The counts are of the folds: what a person's word pins is seen holder by holder.
    """

    target: str
    proposition: str
    status: TargetStatus
    holders: Mapping[Stance, int] = {}


class ConversationView(msgspec.Struct, frozen=True):
    """A conversation with its targets."""

    row: ConversationRow
    targets: tuple[TargetRow, ...]


HolderKey = tuple[str, str, str]  # conversation, holder, target


class HolderRow(msgspec.Struct, frozen=True):
    """A holder's stance toward a target: the fold's, and the one that a person's word pins over it."""

    conversation: str
    holder: str
    target: str
    stance: Stance
    turn: str | None
    confidence: float | None
    flips: int
    pinned: Stance | None = None

    @property
    def key(self) -> HolderKey:
        """What the next page begins behind."""
        return self.conversation, self.holder, self.target


PointKey = tuple[int, int]  # sequence, which persisted events repeat, and position


class Point(msgspec.Struct, frozen=True):
    """One step of a trajectory: an event that was told, be it retracted since."""

    sequence: int
    position: int
    time: dt.datetime
    turn: str | None
    type: str
    before: Stance
    after: Stance
    event: str
    retracted_by: str | None = None

    @property
    def key(self) -> PointKey:
        """What the next page begins behind."""
        return self.sequence, self.position


class Views(Protocol):
    """Conversations, states and events of all tenants. A call raises DatabaseUnavailable.

    A position counts a tenant's events in the order in which they are committed: who has seen position p
    of a tenant never misses one up to p that is committed later.
    """

    async def put(self, batch: Batch) -> Mapping[str, int]:
        """Keep a batch and its offsets, all or nothing; gives the newest position of each tenant that has
        new events.

        What is kept already stays as it is: an event by its id, a state or header by its version. A
        retraction marks its event. A forgotten event takes with it what `forget` names.
        """
        ...

    async def forget(self, tenant: str, conversation: str, holder: str) -> int:
        """Take an erased person out of a conversation, for good; returns how many events went.

        These are the holder's own events up to the newest one (forgotten ones stay), all that were retracted
        since they may quote the person, and the conversation's alerts. They do not come back from the topics.
        """
        ...

    async def offsets(self, topic: str) -> Mapping[int, int]:
        """The next offset to read of a topic's partitions, where any was put."""
        ...

    async def recount(self) -> None:
        """Count anew what conversations count."""
        ...

    async def latest(self, tenant: str) -> int:
        """The newest position that a tenant's events have had; 0 before the first."""
        ...

    async def position_of(self, tenant: str, event: str) -> int | None:
        """The position of an event."""
        ...

    async def events(
        self,
        tenant: str,
        where: Filter = ALL,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int = PAGE,
    ) -> list[StoredEvent]:
        """Events with a position in between: with `after` the oldest first, else the newest first."""
        ...

    async def conversations(
        self, tenant: str, *, behind: Activity | None = None, limit: int = PAGE
    ) -> list[ConversationRow]:
        """A tenant's conversations, the latest active first."""
        ...

    async def conversation(self, tenant: str, conversation: str) -> ConversationView | None:
        """One conversation with its targets."""
        ...

    async def holders(
        self,
        tenant: str,
        *,
        conversation: str | None = None,
        holder: str | None = None,
        behind: HolderKey | None = None,
        limit: int = PAGE,
    ) -> list[HolderRow]:
        """Stances by conversation, holder and target: of one conversation, of one holder, or of all."""
        ...

    async def trajectory(
        self,
        tenant: str,
        conversation: str,
        holder: str,
        target: str,
        *,
        behind: PointKey | None = None,
        limit: int = PAGE,
    ) -> list[Point]:
        """What was told of a holder and target, in order; a retraction shows on what it takes back."""
        ...
