"""The one door into models: requests to read a turn, and the ports that answer them.

An `Engine` is synchronous and may take long (model work); a `Reader` is what the stream awaits. A reader
never sees the dialogue: a request carries the new turn, the stored state and the window, nothing else.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from tracker.context import Window, WindowTurn, find
from tracker.observations import Explanation, Observation
from tracker.stances import Stance


class ReaderUnavailable(Exception):
    """The reader does not answer now (full, timed out, circuit open): pause and ask again, refuse nothing."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class ReaderRejected(ValueError):
    """The reader answered that this request can never be read; asking again will not help."""


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
class Reader(Protocol):
    """What the stream awaits. Raises ReaderUnavailable or ReaderRejected, nothing else on purpose."""

    async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        ...

    async def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        ...

    async def close(self) -> None:
        """Give back threads and connections."""
        ...
