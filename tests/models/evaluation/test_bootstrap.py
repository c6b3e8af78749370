import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.evaluation.bootstrap import Interval, Resampling, difference, interval
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


def apart(rows: Sums, first: Sums, times: int = 400) -> Interval:
    return difference(rows, first, f1, Resampling(times).weights(len(rows)))


@given(COUNTS)
def test_a_system_differs_from_itself_by_nothing(counts: list[tuple[int, int, int]]) -> None:
    rows = np.array(counts, dtype=np.float64)
    found = apart(rows, rows, 50)
    assert found == (Interval(0.0, 0.0, 0.0) if rows.any() else Interval(None, None, None))


def test_a_difference_is_signed_and_paired() -> None:
    easy, hard = [4.0, 0.0, 0.0], [1.0, 3.0, 3.0]
    first = np.array([easy, hard] * 10)
    better = first + np.array([1.0, 0.0, 0.0])
    up, down = apart(better, first), apart(first, better)
    assert up.value == -down.value
    assert 0.0 < up.low <= up.value <= up.high
    # What makes a dialogue hard for both leaves the difference alone: it is narrower than either figure.
    alone = made(first, Resampling(400))
    assert up.high - up.low < (alone.high - alone.low) / 2


def test_a_difference_to_what_is_undefined_is_undefined() -> None:
    assert apart(np.array([[1.0, 0.0, 0.0]]), np.zeros((1, 3))) == Interval(None, None, None)
