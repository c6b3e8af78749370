import pytest

from models.training.loop import share
from models.training.order import Order


def order(**changes: int) -> Order[int]:
    fields = {"count": 70, "batch": 2, "epochs": 2, "seed": 0, "accumulation": 4} | changes
    return Order(make=lambda places, chance: list(places), key=lambda place: place % 5, **fields)


def test_any_step_can_be_started_from() -> None:
    whole = list(order().batches(0))
    assert len(whole) == order().steps == 2 * order().epoch_steps
    for start in range(len(whole) + 1):
        assert list(order().batches(start)) == whole[start:]


def test_no_step_holds_two_epochs() -> None:
    whole = list(order().batches(0))
    first = [one for step in whole[: order().epoch_steps] for batch in step for one in batch]
    assert sorted(first) == list(range(70))
    assert [len(step) for step in whole] == ([4] * 8 + [3]) * 2


def test_a_cosine_falls_slowly_first() -> None:
    shares = [share(step, 100, 0.0, "cosine") for step in range(100)]
    assert shares[0] == 1.0
    assert shares[50] == pytest.approx(0.5, abs=0.02)
    assert shares[25] > 0.75 > 0.25 > shares[75]
    assert shares[-1] < 0.01
