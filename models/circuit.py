"""The circuit breaker, pure: a value, and functions from one value to the next.

Every change of state begins an epoch. A call is admitted in one epoch and its outcome counts in that epoch
alone, so that the late result of a call from before the circuit opened is never taken for the trial's.
"""

import enum
from dataclasses import dataclass, replace

from models.reader import ReaderUnavailable


class Circuit(enum.Enum):
    """Whether calls go through."""

    CLOSED = "closed"  # they do
    OPEN = "open"  # none does, until a time
    HALF_OPEN = "half_open"  # one does, as a trial


class IllegalTransition(ValueError):
    """A circuit was asked for a step it does not have."""


class CircuitOpen(ReaderUnavailable):
    """What is asked failed too often; no call is sent to it for now."""


_LEGAL = frozenset(
    {
        (Circuit.CLOSED, Circuit.OPEN),
        (Circuit.OPEN, Circuit.HALF_OPEN),
        (Circuit.HALF_OPEN, Circuit.CLOSED),
        (Circuit.HALF_OPEN, Circuit.OPEN),
    }
)


@dataclass(frozen=True, kw_only=True)
class CircuitPolicy:
    """How many failures in a row open the circuit, and for how many seconds."""

    failures: int = 5
    open_for: float = 5.0


@dataclass(frozen=True, kw_only=True)
class Breaker:
    """A circuit's state, the failures counted toward opening, and when an open one admits a trial."""

    state: Circuit = Circuit.CLOSED
    failures: int = 0
    until: float = 0.0  # monotonic seconds
    epoch: int = 0


def moved(breaker: Breaker, after: Circuit, until: float = 0.0) -> Breaker:
    """The breaker in its next state, in a new epoch. Raises IllegalTransition."""
    if (breaker.state, after) not in _LEGAL:
        raise IllegalTransition(f"a circuit never goes from {breaker.state.value} to {after.value}")
    return Breaker(state=after, until=until, epoch=breaker.epoch + 1)


def admitted(breaker: Breaker, now: float) -> Breaker:
    """The breaker with one more call admitted. Raises CircuitOpen."""
    if breaker.state is Circuit.CLOSED:
        return breaker
    if breaker.state is Circuit.OPEN and now >= breaker.until:
        return moved(breaker, Circuit.HALF_OPEN)
    raise CircuitOpen(f"the circuit is {breaker.state.value}", max(breaker.until - now, 0.1))


def succeeded(breaker: Breaker, epoch: int) -> Breaker:
    """After an answer to a call admitted in `epoch`."""
    if epoch != breaker.epoch:
        return breaker
    if breaker.state is Circuit.HALF_OPEN:
        return moved(breaker, Circuit.CLOSED)
    return replace(breaker, failures=0)


def failed(breaker: Breaker, epoch: int, now: float, policy: CircuitPolicy) -> Breaker:
    """After a failure of a call admitted in `epoch`."""
    if epoch != breaker.epoch:
        return breaker
    failures = breaker.failures + 1
    if breaker.state is Circuit.HALF_OPEN or failures >= policy.failures:
        return moved(breaker, Circuit.OPEN, until=now + policy.open_for)
    return replace(breaker, failures=failures)


def released(breaker: Breaker, epoch: int, now: float) -> Breaker:
    """After a call admitted in `epoch` was cancelled: nothing was learned, and the next may be the trial."""
    if epoch == breaker.epoch and breaker.state is Circuit.HALF_OPEN:
        return moved(breaker, Circuit.OPEN, until=now)
    return breaker
