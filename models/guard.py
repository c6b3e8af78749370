"""What stands before a part that may be away: a circuit, told how each attempt ended.

How an attempt ended is its owner's to say, by what it raised; to count and to log it, too.
"""

import asyncio
import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from models import circuit
from models.circuit import Breaker, Circuit, CircuitPolicy


class Ended(enum.Enum):
    """How an attempt ended."""

    ANSWERED = "answered"
    REFUSED = "refused"  # it is there, and said no
    FAILED = "failed"  # it is away
    CANCELLED = "cancelled"  # nothing was learned


class Guard:
    """Lets attempts through as a circuit does; one event loop's at a time."""

    def __init__(
        self,
        policy: CircuitPolicy,
        meaning: Callable[[BaseException], Ended],
        *,
        on_move: Callable[[Circuit, Circuit], None],
        on_end: Callable[[Ended], None] = lambda _: None,
    ) -> None:
        """`meaning`: of what an attempt raised; `on_move`: hears each change, before and after."""
        self._policy, self._meaning, self._on_end, self._on_move = policy, meaning, on_end, on_move
        self._untried = asyncio.Event()  # set but while a trial runs
        self._untried.set()
        self.breaker = Breaker()

    async def settled(self) -> None:
        """Waits while a trial runs, whose outcome is everybody's; for as long as the trial may take."""
        while self.breaker.state is Circuit.HALF_OPEN:  # another may have begun meanwhile
            await self._untried.wait()

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """One attempt. Raises CircuitOpen."""
        self._move(circuit.admitted(self.breaker, monotonic()))
        epoch, ended = self.breaker.epoch, Ended.ANSWERED
        try:
            yield
        except BaseException as error:
            ended = self._meaning(error)
            raise
        finally:
            self._on_end(ended)
            self._move(self._after(ended, epoch))

    def _after(self, ended: Ended, epoch: int) -> Breaker:
        match ended:
            case Ended.FAILED:
                return circuit.failed(self.breaker, epoch, monotonic(), self._policy)
            case Ended.CANCELLED:
                return circuit.released(self.breaker, epoch, monotonic())
        return circuit.succeeded(self.breaker, epoch)

    def _move(self, after: Breaker) -> None:
        before, self.breaker = self.breaker.state, after
        if after.state is before:
            return
        if after.state is Circuit.HALF_OPEN:
            self._untried.clear()
        else:
            self._untried.set()
        self._on_move(before, after.state)
