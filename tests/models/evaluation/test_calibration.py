import msgspec
import pytest

from models.evaluation.calibration import BINS, Bin, brier, calibration_error, expressed_bins, reliability
from models.evaluation.measures import share
from models.evaluation.prediction import Case, PredictedTurn, Prediction
from tests.models.evaluation.build import dialogue, talk
from tracker.observations import Probabilities
from tracker.stances import Stance

SURE, HALF, TIE = (
    Probabilities(support=0.95, none=0.05),
    Probabilities(oppose=0.6, none=0.4),
    Probabilities(support=0.5, oppose=0.5),
)


def read(*expressed: Probabilities) -> Case:
    """Gold: support is expressed at the first turn, none after."""
    gold = dialogue(*talk("aS " + "aS " * (len(expressed) - 1)))
    turns = tuple(
        PredictedTurn(index=index, holder="a", before=Stance.UNKNOWN, stance=Stance.UNKNOWN, expressed=said)
        for index, said in enumerate(expressed)
    )
    return Case(gold, Prediction("d", turns))


def test_by_hand() -> None:
    found = read(SURE, HALF, SURE)  # right; wrong; wrong
    bins = reliability(expressed_bins(found))
    assert [one.turns for one in bins] == [0, 0, 0, 0, 0, 0, 1, 0, 0, 2]
    assert bins[6] == Bin(0.6, 0.7, 1, 0.6, 0.0)
    assert bins[9] == Bin(0.9, 1.0, 2, 0.95, 0.5)
    assert calibration_error(expressed_bins(found)) == pytest.approx((0.6 + abs(2 * 0.95 - 1)) / 3)
    first, second, third = 2 * 0.05**2, 0.6**2 + 0.6**2, 0.95**2 + 0.95**2
    assert share(brier(found)) == pytest.approx((first + second + third) / 3)


def test_a_sure_and_right_reader_is_calibrated_and_a_sure_and_wrong_one_the_worst() -> None:
    right, wrong = read(Probabilities(support=1.0)), read(Probabilities(oppose=1.0))
    assert (calibration_error(expressed_bins(right)), share(brier(right))) == (0.0, 0.0)
    assert (calibration_error(expressed_bins(wrong)), share(brier(wrong))) == (1.0, 2.0)


def test_a_tie_is_the_first_labels() -> None:
    assert reliability(expressed_bins(read(TIE)))[5] == Bin(0.5, 0.6, 1, 0.5, 1.0)


def test_certainty_falls_into_the_last_bin() -> None:
    assert reliability(expressed_bins(read(Probabilities(none=1.0))))[BINS - 1].turns == 1


def test_empty_bins_have_no_figures() -> None:
    assert msgspec.structs.astuple(reliability(expressed_bins(read(SURE)))[0]) == (0.0, 0.1, 0, None, None)
