import math

import numpy as np
import pytest

from models.evaluation.measures import (
    confusion_accuracy,
    confusion_macro_f1,
    f1,
    macro_f1,
    mean_defined,
    per_thousand,
    precision,
    recall,
    share,
    sums,
)


def test_f1_by_hand() -> None:
    counted = sums(3, 1, 2)
    assert precision(counted) == 0.75
    assert recall(counted) == 0.6
    assert f1(counted) == pytest.approx(2 * 0.75 * 0.6 / (0.75 + 0.6))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((0, 0, 0), math.nan), ((0, 2, 0), 0.0), ((0, 0, 2), 0.0), ((2, 0, 0), 1.0)],
    ids=["nothing to find, nothing said", "only false alarms", "only misses", "perfect"],
)
def test_f1_at_the_borders(counts: tuple[int, int, int], expected: float) -> None:
    assert f1(sums(*counts)) == pytest.approx(expected, nan_ok=True)


def test_undefined_precision_is_no_number() -> None:
    assert math.isnan(precision(sums(0, 0, 3)))
    assert math.isnan(recall(sums(0, 3, 0)))
    assert math.isnan(share(sums(0, 0)))


def test_per_thousand() -> None:
    assert per_thousand(sums(3, 200)) == 15.0


def test_macro_f1_leaves_out_classes_that_do_not_occur() -> None:
    assert macro_f1(sums(1, 0, 0, 0, 1, 0, 0, 0, 0)) == pytest.approx(0.5)


def test_confusion_by_hand() -> None:
    matrix = sums(2, 1, 0, 0, 1, 0, 0, 0, 0)  # gold a: twice a, once b; gold b: once b; no c
    assert confusion_accuracy(matrix) == 0.75
    # a: 2 hits, no false alarm, 1 miss; b: 1 hit, 1 false alarm
    assert confusion_macro_f1(matrix) == pytest.approx((4 / 5 + 2 / 3) / 2)


def test_figures_of_many_resamples_at_once_are_those_of_each() -> None:
    rows = np.random.default_rng(0).integers(0, 4, size=(7, 9)).astype(np.float64)
    for value in (macro_f1, confusion_macro_f1, confusion_accuracy):
        assert value(rows) == pytest.approx([float(value(row)) for row in rows], nan_ok=True)


def test_a_mean_of_nothing_is_undefined() -> None:
    assert math.isnan(mean_defined(np.array([np.nan, np.nan])))
