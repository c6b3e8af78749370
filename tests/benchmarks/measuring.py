"""What a benchmark says: figures over rounds, and ratios of rounds measured side by side."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

Conditions = Mapping[str, str | int | float]


class Goal(msgspec.Struct, frozen=True):
    """Between what the median is to lie; None: open to that side."""

    least: float | None = None
    most: float | None = None

    def __str__(self) -> str:
        """As a table shows it."""
        if self.least is None:
            return f"at most {self.most:g}"
        return f"at least {self.least:g}" if self.most is None else f"{self.least:g} to {self.most:g}"

    def met_by(self, value: float) -> bool:
        """Whether a value lies there."""
        low = float("-inf") if self.least is None else self.least
        return low <= value <= (float("inf") if self.most is None else self.most)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One thing measured in every round, or the ratio of two such things round by round."""

    name: str
    unit: str
    rounds: tuple[float, ...]
    goal: Goal | None = None

    @property
    def least(self) -> float:
        """The smallest of the rounds."""
        return min(self.rounds)

    @property
    def median(self) -> float:
        """The middle of the rounds: what a table compares."""
        return statistics.median(self.rounds)

    @property
    def most(self) -> float:
        """The largest of the rounds."""
        return max(self.rounds)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one benchmark found, and under which conditions."""

    name: str
    conditions: Conditions
    figures: tuple[Figure, ...]
    seconds: float = 0.0


class Scale(msgspec.Struct, frozen=True):
    """How much is measured: the same things, fewer of them where it must be quick."""

    quick: bool = False

    def of(self, full: int, quick: int) -> int:
        """One of two sizes."""
        return quick if self.quick else full


class Stopwatch:
    """Seconds that its `with` blocks took, added up."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count this block."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - start


def interleaved(
    candidates: Mapping[str, Callable[[int], object]], rounds: int, *, warm: bool = False
) -> dict[str, list[float]]:
    """Seconds of each candidate by round; each is called with the number of the round.

    The candidates take turns, and every other round in reverse: what slows the machine for a while slows
    all of them, and none always runs after the same one. A round before the first warms all up, unless they
    are `warm`.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(0 if warm else -1, rounds):
        order = list(candidates.items())
        for name, candidate in order if number % 2 else reversed(order):
            watch = Stopwatch()
            with watch.running():
                candidate(max(number, 0))
            if number >= 0:
                seconds[name].append(watch.seconds)
    return seconds


def ratio(name: str, above: Sequence[float], below: Sequence[float], goal: Goal | None = None) -> Figure:
    """One quotient a round, of two things that were measured in the same rounds."""
    quotients = tuple(high / low for high, low in zip(above, below, strict=True))
    return Figure(name=name, unit="ratio", rounds=quotients, goal=goal)


def milliseconds(name: str, seconds: Sequence[float], share: int = 1) -> Figure:
    """Milliseconds a round, or of one of the `share` equal parts of a round."""
    return Figure(name=name, unit="ms", rounds=tuple(1000 * second / share for second in seconds))
