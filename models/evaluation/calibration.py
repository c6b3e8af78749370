"""Whether probabilities of `expressed` mean what they say: reliability bins, calibration error, Brier."""

from collections.abc import Iterator

import msgspec
import numpy as np

from models.evaluation.measures import Sums, divided, sums
from models.evaluation.prediction import Case
from tracker.observations import Probabilities
from tracker.stances import Expressed

BINS = 10  # of equal width over the top label's probability: [0, 0.1) to [0.9, 1]


class Bin(msgspec.Struct, frozen=True):
    """A reliability bin: how sure the system was of its first label, and how often it was right."""

    low: float
    high: float
    turns: int
    confidence: float | None
    accuracy: float | None


def expressed_bins(case: Case) -> Sums:
    """A bin after the other: (turns, sum of confidence, right ones), flattened."""
    counted = np.zeros((BINS, 3))
    for said, gold in _read(case):
        label, confidence = said.ranked()[0]
        counted[min(int(confidence * BINS), BINS - 1)] += (1, confidence, label is gold)
    return counted.ravel()


def calibration_error(totals: Sums) -> Sums:
    """Expected calibration error: the mean over turns of |confidence - accuracy| of their bin."""
    bins = totals.reshape(*totals.shape[:-1], BINS, 3)
    gap = np.abs(bins[..., 1] - bins[..., 2]).sum(axis=-1)
    return divided(gap, bins[..., 0].sum(axis=-1))


def brier(case: Case) -> Sums:
    """(sum, turns) of the multi-class Brier score: 0 is perfect, 2 the worst."""
    scores = [sum((said[label] - (label is gold)) ** 2 for label in Expressed) for said, gold in _read(case)]
    return sums(sum(scores), len(scores))


def reliability(totals: Sums) -> tuple[Bin, ...]:
    """The bins of `expressed_bins`, summed over dialogues."""
    return tuple(_bin(place, row) for place, row in enumerate(totals.reshape(BINS, 3)))


def _bin(place: int, row: Sums) -> Bin:
    turns, confidence, right = row.tolist()
    if not turns:
        return Bin(place / BINS, (place + 1) / BINS, 0, None, None)
    return Bin(
        place / BINS, (place + 1) / BINS, int(turns), round(confidence / turns, 6), round(right / turns, 6)
    )


def _read(case: Case) -> Iterator[tuple[Probabilities, Expressed]]:
    for step in case.steps():
        if step.gold.expressed is not None and step.said.expressed is not None:
            yield step.said.expressed, step.gold.expressed
