"""A measure: what one dialogue contributes, and the figure that sums of such contributions give.

Every figure here is a function of sums over dialogues, so that one matrix product resamples it. A figure
that is undefined (nothing to find, nothing said) is nan, never 0 or 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Sums: TypeAlias = NDArray[np.float64]
Case = TypeVar("Case")


@dataclass(frozen=True)
class Measure(Generic[Case]):
    """A named figure. `tally` gives K numbers a case; `value` turns sums (..., K) into figures (...)."""

    name: str
    tally: Callable[[Case], Sums]
    value: Callable[[Sums], Sums]

    def rows(self, cases: Sequence[Case]) -> Sums:
        """What each case contributes: (cases, K)."""
        return np.stack([self.tally(case) for case in cases])

    def of(self, cases: Sequence[Case]) -> float:
        """The figure over all cases."""
        return float(self.value(self.rows(cases).sum(axis=0)))


def sums(*numbers: float) -> Sums:
    """A case's contribution from its numbers."""
    return np.array(numbers, dtype=np.float64)


def divided(part: Sums, whole: Sums) -> Sums:
    """part / whole; nan where whole is 0."""
    out: Sums = np.full(np.shape(whole), np.nan)
    return np.divide(part, whole, out=out, where=whole != 0)


def share(totals: Sums) -> Sums:
    """Of (part, whole): part / whole."""
    return divided(totals[..., 0], totals[..., 1])


def per_thousand(totals: Sums) -> Sums:
    """Of (part, whole): part in 1,000 of whole."""
    return 1000.0 * share(totals)


def precision(totals: Sums) -> Sums:
    """Of (TP, FP, FN): TP / (TP + FP) (StanceFlip equation 10)."""
    return divided(totals[..., 0], totals[..., 0] + totals[..., 1])


def recall(totals: Sums) -> Sums:
    """Of (TP, FP, FN): TP / (TP + FN) (StanceFlip equation 10)."""
    return divided(totals[..., 0], totals[..., 0] + totals[..., 2])


def f1(totals: Sums) -> Sums:
    """Of (TP, FP, FN): 2PR / (P + R), written 2TP / (2TP + FP + FN) (StanceFlip equation 10)."""
    return divided(2 * totals[..., 0], 2 * totals[..., 0] + totals[..., 1] + totals[..., 2])


def macro_f1(totals: Sums) -> Sums:
    """Of (TP, FP, FN) a class, flattened: the mean F1 (PanoSent equations 20 and 31).

    A class that is neither gold nor predicted has no F1 and is left out of the mean.
    """
    return mean_defined(f1(totals.reshape(*totals.shape[:-1], -1, 3)))


def mean_defined(values: Sums) -> Sums:
    """The mean over the last axis of what is defined; nan where nothing is."""
    defined = ~np.isnan(values)
    return divided(np.where(defined, values, 0.0).sum(axis=-1), defined.sum(axis=-1).astype(np.float64))


def confusion_accuracy(totals: Sums) -> Sums:
    """Of a flattened confusion matrix: the share on its diagonal."""
    return divided(_square(totals).trace(axis1=-2, axis2=-1), totals.sum(axis=-1))


def confusion_macro_f1(totals: Sums) -> Sums:
    """Of a flattened confusion matrix (gold, predicted): the mean F1 of the classes that occur."""
    matrix = _square(totals)
    hit = np.diagonal(matrix, axis1=-2, axis2=-1)
    counts = np.stack([hit, matrix.sum(axis=-2) - hit, matrix.sum(axis=-1) - hit], axis=-1)
    return mean_defined(f1(counts))


def _square(totals: Sums) -> Sums:
    size = round(totals.shape[-1] ** 0.5)
    return totals.reshape(*totals.shape[:-1], size, size)
