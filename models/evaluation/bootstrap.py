"""Bootstrap intervals over dialogues: turns of one dialogue are no independent draws, dialogues are."""

from collections.abc import Callable

import msgspec
import numpy as np

from models.evaluation.measures import Sums

DIGITS = 6


class Interval(msgspec.Struct, frozen=True):
    """A figure and its interval; None where it is undefined."""

    value: float | None
    low: float | None
    high: float | None


class Resampling(msgspec.Struct, frozen=True):
    """How intervals are made: percentile bootstrap over dialogues, from a fixed seed."""

    times: int = 1000
    seed: int = 0
    level: float = 0.95

    def weights(self, dialogues: int) -> Sums:
        """(times, dialogues): how often each resample draws each dialogue."""
        chance = np.full(dialogues, 1.0 / dialogues)
        drawn = np.random.default_rng(self.seed).multinomial(dialogues, chance, size=self.times)
        return drawn.astype(np.float64)


def interval(rows: Sums, value: Callable[[Sums], Sums], weights: Sums, level: float = 0.95) -> Interval:
    """The figure of all rows (dialogues, K) and its percentile interval.

    Resamples in which the figure is undefined are left out. The interval is widened to hold the figure
    itself, which a percentile interval of few and skewed draws may miss.
    """
    return _around(float(value(rows.sum(axis=0))), value(weights @ rows), level)


def difference(
    rows: Sums, first: Sums, value: Callable[[Sums], Sums], weights: Sums, level: float = 0.95
) -> Interval:
    """How much the figure of `rows` exceeds that of `first`, which are of the same dialogues, in order.

    Both are taken of each resample: what makes a dialogue hard for both leaves the difference alone.
    """
    point = float(value(rows.sum(axis=0)) - value(first.sum(axis=0)))
    return _around(point, value(weights @ rows) - value(weights @ first), level)


def _around(point: float, draws: Sums, level: float) -> Interval:
    if np.isnan(point):
        return Interval(None, None, None)
    defined = np.append(draws[~np.isnan(draws)], point)
    tail = (1.0 - level) / 2
    low, high = np.quantile(defined, [tail, 1.0 - tail])
    return Interval(_rounded(point), _rounded(min(low, point)), _rounded(max(high, point)))


def _rounded(number: float) -> float:
    return round(float(number), DIGITS)
