"""What waits for the engine: calls, their requests, and a FIFO lane for each kind. No clock and no loop."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

from models.execution import Answer, Outcome, Request

_Req = TypeVar("_Req")
_Ans = TypeVar("_Ans")


@dataclass(frozen=True, kw_only=True)
class BatchLimits:
    """What a batch, and the queue before it, may hold at most. Times are seconds."""

    queued: int = 1024  # requests that wait
    requests: int = 64  # a batch
    tokens: int = 16_384  # a batch
    linger: float = 0.010  # how long a request waits for company
    timeout: float = 30.0  # a call, waiting and reading
    stuck_after: float = 20.0  # a batch that runs longer turns readiness red
    give_up_after: float = 300.0  # a batch that runs longer ends the worker, for its supervisor to start anew


@dataclass(eq=False)
class Call(Generic[_Req, _Ans]):
    """One client's requests, answered together once the last of them has its outcome."""

    requests: Sequence[_Req]
    answered: "asyncio.Future[list[Outcome[_Ans]]]"
    arrived: float
    _outcomes: "dict[int, Outcome[_Ans]]" = field(default_factory=dict)

    def put(self, index: int, outcome: "Outcome[_Ans]") -> None:
        """One request's outcome."""
        self._outcomes[index] = outcome
        if len(self._outcomes) == len(self.requests) and not self.answered.done():
            self.answered.set_result([self._outcomes[at] for at in range(len(self.requests))])


@dataclass(eq=False)
class Item(Generic[_Req, _Ans]):
    """One request of a call; its tokens are known once the engine's thread has counted them."""

    call: Call[_Req, _Ans]
    index: int
    tokens: int | None = None

    @property
    def request(self) -> _Req:
        """The request itself."""
        return self.call.requests[self.index]


class Lane(Generic[Request, Answer]):
    """The requests of one kind in order of arrival."""

    def __init__(
        self,
        kind: str,
        run: Callable[[Sequence[Request]], list[Answer]],
        tokens: Callable[[Request], int],
    ) -> None:
        self.kind = kind
        self.run = run
        self.tokens = tokens
        self._items: deque[Item[Request, Answer]] = deque()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def oldest(self) -> float:
        """When the first that waits arrived; infinity where none does."""
        return self._items[0].call.arrived if self._items else float("inf")

    def add(self, call: Call[Request, Answer]) -> None:
        """Queue a call's requests."""
        self._items.extend(Item(call, index) for index in range(len(call.requests)))

    def forget(self, call: Call[Request, Answer]) -> bool:
        """Take out what still waits of a call; whether there was any."""
        before = len(self._items)
        self._items = deque(item for item in self._items if item.call is not call)
        return len(self._items) < before

    def uncounted(self, limits: BatchLimits) -> list[Item[Request, Answer]]:
        """Those that may be in the next batch and whose tokens nobody has counted."""
        return [item for item in islice(self._items, limits.requests) if item.tokens is None]

    def full(self, limits: BatchLimits) -> bool:
        """Whether waiting longer would not make the next batch larger."""
        ready = self._ready(limits)
        return ready == limits.requests or ready < len(self._items)

    def take(self, limits: BatchLimits) -> list[Item[Request, Answer]]:
        """The next batch: the longest beginning of the lane within the limits; at least one, if any waits."""
        return [self._items.popleft() for _ in range(self._ready(limits))]

    def _ready(self, limits: BatchLimits) -> int:
        total = 0
        for count, item in enumerate(islice(self._items, limits.requests)):
            if item.tokens is None:
                return count
            total += item.tokens
            if count and total > limits.tokens:
                return count
        return min(len(self._items), limits.requests)
