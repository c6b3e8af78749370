"""Whether what was looked at again and again stays as it is: memory flat, lag bounded."""

import statistics
from collections.abc import Iterator, Sequence

import msgspec

from tests.benchmarks.measuring import Figure, Goal
from tests.benchmarks.sampling import Sample

FLAT = Goal(least=-5.0, most=5.0)  # percent; what falls is not flat, either: it did not start settled
NOTHING = Goal(most=0.0)
PARTS = 5
HOUR = 3600.0


class Trend(msgspec.Struct, frozen=True):
    """How a series goes on from its beginning to its end."""

    first: float  # median of the first fifth
    last: float  # and of the last
    slope: float  # a second, by least squares
    span: float  # seconds

    @property
    def growth(self) -> float:
        """Percent from the first fifth to the last: what a single outlier does not move."""
        return 100 * (self.last - self.first) / self.first

    @property
    def drift(self) -> float:
        """Percent over the whole span by the slope: what goes up and down again does not hide."""
        return 100 * self.slope * self.span / self.first

    @property
    def rise(self) -> float:
        """From the first fifth to the last."""
        return self.last - self.first


def trend(seconds: Sequence[float], values: Sequence[float]) -> Trend:
    """The trend of values at their times, two or more."""
    share = max(1, len(values) // PARTS)
    first, last = statistics.median(values[:share]), statistics.median(values[-share:])
    slope, _ = statistics.linear_regression(seconds, values)
    return Trend(first, last, slope, seconds[-1] - seconds[0])


def settled(samples: Sequence[Sample], warm_up: float) -> Sequence[Sample]:
    """What was seen after the warm-up."""
    return [sample for sample in samples if sample.seconds >= warm_up]


def of_memory(samples: Sequence[Sample], judged: Sequence[str]) -> Iterator[Figure]:
    """Each process' memory; only of those that are judged it is asked whether it is flat."""
    seconds = [sample.seconds for sample in samples]
    for name in samples[0].memory:
        values = tuple(sample.memory[name] for sample in samples)
        found = trend(seconds, values)
        yield Figure(name=f"{name}: resident memory", unit="MB", rounds=values)
        yield Figure(name=f"{name}: slope", unit="MB/h", rounds=(found.slope * HOUR,))
        if name in judged:
            for how, grown in (("first to last fifth", found.growth), ("least squares", found.drift)):
                yield Figure(name=f"{name}: growth, {how}", unit="%", rounds=(grown,), goal=FLAT)


def of_lag(samples: Sequence[Sample], batch: int) -> Iterator[Figure]:
    """How far the agents are behind; bounded where they are not a batch further at the end."""
    behind = tuple(float(sample.behind) for sample in samples)
    found = trend([sample.seconds for sample in samples], behind)
    goal = Goal(most=float(batch))
    yield Figure(name="lag: sent and not finished", unit="records", rounds=behind)
    yield Figure(name="lag: rise, first to last fifth", unit="records", rounds=(found.rise,), goal=goal)
    for number in sorted({number for sample in samples for number in sample.counted.lag}, key=int):
        lags = tuple(float(sample.counted.lag.get(number, 0)) for sample in samples)
        yield Figure(name=f"lag: partition {number}, as agents say", unit="records", rounds=lags)


def of_work(samples: Sequence[Sample], capacity: float) -> Iterator[Figure]:
    """What was fed and finished between two looks, and what went wrong."""
    yield Figure(name="capacity", unit="records/s", rounds=(capacity,))
    sent = _rates(samples, [sample.sent for sample in samples])
    yield Figure(name="sent", unit="records/s", rounds=sent)
    finished = _rates(samples, [sample.counted.finished for sample in samples])
    yield Figure(name="finished", unit="records/s", rounds=finished)
    yield Figure(name="sent, share of capacity", unit="ratio", rounds=(statistics.mean(sent) / capacity,))
    last = samples[-1].counted
    yield Figure(name="refused", unit="records", rounds=(float(last.refused),), goal=NOTHING)
    yield Figure(name="pauses for a part", unit="times", rounds=(float(last.pauses),), goal=NOTHING)


def _rates(samples: Sequence[Sample], counts: Sequence[int]) -> tuple[float, ...]:
    times = [sample.seconds for sample in samples]
    steps = zip(counts, counts[1:], times, times[1:], strict=False)
    return tuple((after - before) / (later - earlier) for before, after, earlier, later in steps)
