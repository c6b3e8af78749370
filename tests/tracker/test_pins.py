"""Pins: one a state, found by holder and target, ended by their time."""

import pytest

from tests.tracker.strategies import at
from tracker import pins
from tracker.pins import Pin
from tracker.stances import Stance

ANN = Pin("ann", "t-1", Stance.SUPPORT, 3)
BO = Pin("bo", "t-1", Stance.OPPOSE, 4, at(60))


def test_a_pin_is_of_one_holder_and_one_target() -> None:
    assert pins.find((ANN, BO), "bo", "t-1") is BO
    assert pins.find((ANN, BO), "bo", "t-2") is None
    assert pins.pinned((ANN, BO), "ann") == ("t-1",)


def test_a_state_has_one_pin_at_a_time() -> None:
    other = Pin("ann", "t-1", Stance.UNKNOWN, 9)
    assert pins.placed((ANN, BO), other) == (BO, other)
    assert pins.placed((BO,), ANN) == (BO, ANN)


@pytest.mark.parametrize(("seconds", "ended"), [(59.999, ()), (60, (BO,)), (9999, (BO,))])
def test_a_pin_ends_at_its_time_and_one_without_never(seconds: float, ended: pins.Pins) -> None:
    assert pins.expired((ANN, BO), at(seconds)) == ended
    assert pins.without((ANN, BO), *ended) == ((ANN,) if ended else (ANN, BO))
