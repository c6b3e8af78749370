"""The one door into models: requests to read a turn, and the ports that answer them.

An `Engine` is synchronous and may take long (model work); a `Reader` is what the stream awaits. A reader
never sees the dialogue: a request carries the new turn, the stored state and the window, nothing else.
"""

from collections.abc import Sequence
from typing import Annotated, Protocol, runtime_checkable

import msgspec

from tracker.context import Window, WindowTurn, find
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal
from tracker.stances import Stance


class ReaderUnavailable(Exception):
    """The reader does not answer now (full, timed out, circuit open): pause and ask again, refuse nothing."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class ReaderRejected(ValueError):
    """The reader answered that this request can never be read; asking again will not help."""


class CannotPropose(ReaderRejected):
    """The engine finds no targets: nobody gave it a Cartographer, or it cannot be talked to."""


class ObserveRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn to be read for one target, in the light of the holder's stored state."""

    conversation: str
    turn: WindowTurn
    revision: int
    target: str  # target id
    proposition: str
    state: Stance  # the holder's state before this turn
    window: Window = ()  # recent turns before this one, oldest first; already read
    tenant: str = "default"

    @property
    def reply(self) -> WindowTurn | None:
        """The turn replied to, if the window still holds it."""
        return find(self.window, self.turn.reply_to)


class ExplainRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A flip to be explained: the request it was observed by, the observation, and the stance it led to."""

    observed: ObserveRequest
    observation: Observation
    after: Stance


class ProposeRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A conversation's recent turns, for the Cartographer to say what they argue about."""

    conversation: str
    turns: Annotated[Window, msgspec.Meta(min_length=1)]  # oldest first; the last one prompts the question
    proposition: str = ""  # of the found target that the debate may have left; "": there is none yet
    tenant: str = "default"

    @property
    def shown(self) -> ObserveRequest:
        """The same as a turn to be read, by which its language and its tokens are known."""
        *before, last = self.turns
        return ObserveRequest(
            self.conversation, last, 0, "", self.proposition, Stance.UNKNOWN, tuple(before), self.tenant
        )


@runtime_checkable
class Engine(Protocol):
    """A synchronous reader of turns; called from one worker thread at a time.

    It raises ReaderRejected for a request that can never be read; whatever else it raises is its own failure.
    """

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        ...

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        ...

    def tokens(self, request: ObserveRequest) -> int:
        """About how many tokens a request costs; for batching."""
        ...


@runtime_checkable
class Proposer(Engine, Protocol):
    """An engine that also finds targets; what it raises means the same there."""

    def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        """One proposal a request, in order."""
        ...


@runtime_checkable
class Reader(Protocol):
    """What the stream awaits. Raises ReaderUnavailable or ReaderRejected, nothing else on purpose."""

    async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        ...

    async def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        ...

    async def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        """One proposal a request, in order. Raises CannotPropose where its engine finds no targets."""
        ...

    async def proposes(self) -> bool:
        """Whether its engine finds targets."""
        ...

    async def close(self) -> None:
        """Give back threads and connections."""
        ...
