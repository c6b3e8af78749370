import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.evaluation.bootstrap import Interval, Resampling, interval
from models.evaluation.measures import Sums, f1

COUNTS = st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=12)


def made(rows: Sums, resampling: Resampling) -> Interval:
    return interval(rows, f1, resampling.weights(len(rows)), resampling.level)


@given(COUNTS, st.integers(0, 2**32 - 1))
def test_an_interval_holds_its_figure_and_the_seed_decides_it(
    counts: list[tuple[int, int, int]], seed: int
) -> None:
    rows = np.array(counts, dtype=np.float64)
    found = made(rows, Resampling(50, seed))
    assert found == made(rows, Resampling(50, seed))
    if found.value is None or found.low is None or found.high is None:
        assert not rows.any()
    else:
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0


def test_another_seed_draws_otherwise() -> None:
    first, second = Resampling(50, 0).weights(20), Resampling(50, 1).weights(20)
    assert not np.array_equal(first, second)


def test_every_resample_has_as_many_dialogues() -> None:
    assert set(Resampling(50).weights(7).sum(axis=1)) == {7.0}


def test_equal_dialogues_leave_no_doubt() -> None:
    assert made(np.array([[1.0, 1.0, 0.0]] * 5), Resampling(100)) == Interval(
        pytest.approx(2 / 3, abs=1e-6), pytest.approx(2 / 3, abs=1e-6), pytest.approx(2 / 3, abs=1e-6)
    )


def test_what_is_undefined_has_no_interval() -> None:
    assert made(np.zeros((4, 3)), Resampling(10)) == Interval(None, None, None)


def test_resamples_without_the_thing_are_left_out() -> None:
    rows = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert made(rows, Resampling(100)) == Interval(1.0, 1.0, 1.0)


def test_more_dialogues_make_it_narrower() -> None:
    rows = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]] * 4)
    few, many = made(rows, Resampling(500)), made(np.tile(rows, (20, 1)), Resampling(500))
    assert many.high - many.low < few.high - few.low
