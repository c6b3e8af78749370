"""Token buckets: how often each key may ask. Pure, on a clock that is handed in.

They are this process's own: behind a balancer each gateway counts for itself.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

MOST = 10_000  # keys remembered; who is forgotten begins with a full bucket


@dataclass(frozen=True, kw_only=True)
class Rate:
    """So many requests a second in the long run, and so many at once."""

    per_second: float = 100.0
    burst: float = 200.0


class Buckets:
    """A bucket for each name."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._full_at: OrderedDict[str, float] = OrderedDict()  # when each bucket is full again

    def take(self, name: str) -> float:
        """Take a token; 0, or the seconds until there is one."""
        now, seconds = self._clock(), 1 / self._rate.per_second
        full_at = max(self._full_at.get(name, now), now) + seconds
        wait = full_at - now - self._rate.burst * seconds
        if wait > 1e-9:  # a float's last digits are no debt
            return wait
        self._full_at[name] = full_at
        self._full_at.move_to_end(name)
        if len(self._full_at) > MOST:
            self._full_at.popitem(last=False)
        return 0.0
