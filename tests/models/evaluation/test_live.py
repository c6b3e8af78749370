"""The live measures on cases counted by hand."""

import math

import pytest

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.evaluation import live
from models.evaluation.prediction import Case, PredictedTurn, Prediction
from tests.models.evaluation.build import FACT, FEEL, OPP, SUP, UNK, Line, case, dialogue, prediction, talk


def figures(*found: Case) -> dict[str, float]:
    return {measure.name: measure.of(found) for measure in live.MEASURES}


GOLD = talk("aS bO aO bO aO")  # a flips at turn 2


def read(said: list[Line] | str, **given: object) -> dict[str, float]:
    lines = talk(said) if isinstance(said, str) else said
    return figures(Case(dialogue(*GOLD), prediction(*lines, **given)))


def test_a_perfect_reading() -> None:
    found = read(GOLD)
    assert {value for name, value in found.items() if name.endswith(("_f1", "_accuracy"))} == {1.0}
    assert found["flips_detected_in_time"] == 1.0
    assert found["false_flips_per_1000_turns"] == found["detection_delay_turns"] == 0.0
    assert found["expressed_calibration_error"] == found["expressed_brier"] == 0.0


def test_stances_by_hand() -> None:
    found = read("aS bU aS bO aO")
    assert found["stance_accuracy"] == pytest.approx(3 / 5)
    # support: 1 hit, 1 false alarm; oppose: 2 hits, 2 misses; unknown: 1 false alarm
    assert found["stance_macro_f1"] == pytest.approx((2 / 3 + 4 / 6 + 0) / 3)


def test_a_late_flip_is_a_miss_and_a_false_one_but_detected() -> None:
    found = read("aS bO aS bO aO")
    assert found["flip_any_f1"] == found["flip_exact_f1"] == 0.0
    assert found["false_flips_per_1000_turns"] == 200.0
    assert (found["detection_delay_turns"], found["flips_detected_in_time"]) == (2.0, 1.0)


def test_a_flip_to_elsewhere_is_a_flip_but_not_the_exact_one() -> None:
    found = read("aS bO aN bO aN")
    assert (found["flip_any_f1"], found["flip_exact_f1"], found["flip_exact_recall"]) == (1.0, 0.0, 0.0)
    assert found["false_flips_per_1000_turns"] == 0.0
    assert found["flips_detected_in_time"] == 0.0
    assert math.isnan(found["detection_delay_turns"])


def test_a_flip_from_elsewhere_is_not_the_exact_one() -> None:
    assert read("aN bO aO bO aO")["flip_exact_f1"] == 0.0


def test_triggers_need_the_exact_flip() -> None:
    assert read(GOLD, trigger=FEEL)["flip_trigger_f1"] == 0.0
    assert read(GOLD, trigger=FEEL)["flip_exact_f1"] == 1.0
    assert read(GOLD, trigger=FACT)["flip_trigger_f1"] == 1.0
    assert read("aS bO aN bO aN", trigger=FACT)["flip_trigger_f1"] == 0.0


@pytest.mark.parametrize(("turns", "hit"), [((1,), 1.0), ((0, 1), 1.0), ((0,), 0.0), ((), 0.0)])
def test_one_trigger_turn_hit_is_enough(turns: tuple[int, ...], hit: float) -> None:
    assert read(GOLD, turns=turns)["flip_trigger_turn_f1"] == hit


def test_establishment_is_no_flip() -> None:
    found = figures(case(talk("aU aS"), talk("aU aO")))
    assert math.isnan(found["flip_any_f1"])
    assert found["false_flips_per_1000_turns"] == 0.0


def test_no_gold_flips_but_predicted_ones() -> None:
    found = figures(case(talk("aS aS"), talk("aS aO")))
    assert found["flip_any_f1"] == 0.0
    assert found["false_flips_per_1000_turns"] == 500.0
    assert math.isnan(found["flips_detected_in_time"])


def test_an_early_flip_detects_nothing() -> None:
    assert live.delays(case(talk("aS aS aO"), talk("aS aO aO"))) == []


def test_a_detection_comes_before_the_holders_next_flip() -> None:
    gold = talk("aS aO aS aO aO")
    assert live.delays(case(gold, talk("aS aS aS aO aO"))) == [0]  # the last flip, not the first
    assert live.delays(case(gold, gold)) == [0, 0, 0]


def test_anothers_flips_neither_detect_nor_end_the_wait() -> None:
    gold, said = talk("aS bS aO bO aO"), talk("aS bS aS bO aO")
    assert live.delays(case(gold, said)) == [2, 0]


def test_flips_without_mark_are_seen_in_the_stances() -> None:
    turns = tuple(
        LabelledTurn(index=index, speaker="a", text="x", stance=stance)
        for index, stance in enumerate((UNK, SUP, OPP))
    )
    bare = Dialogue(id="d", source="s", language="en", turns=turns)
    assert [step.flipped for step in Case(bare, prediction(*talk("aU aS aO"))).steps()] == [
        False,
        False,
        True,
    ]


def test_turns_without_labels_are_left_out() -> None:
    turns = (
        LabelledTurn(index=0, speaker="a", text="x"),
        LabelledTurn(index=1, speaker="a", text="x", stance=SUP),
    )
    bare = Case(Dialogue(id="d", source="s", language="en", turns=turns), prediction(*talk("aO aS")))
    found = figures(bare)
    assert found["stance_accuracy"] == 1.0
    assert found["false_flips_per_1000_turns"] == 1000.0  # of the one turn of which the labels speak
    assert math.isnan(found["emotion_accuracy"])


@pytest.mark.parametrize("said", ["aS", "aS bO aO bO bO"], ids=["fewer turns", "another holder"])
def test_a_prediction_of_something_else_is_refused(said: str) -> None:
    with pytest.raises(ValueError, match="is not of d"):
        Case(dialogue(*GOLD), prediction(*talk(said)))


def test_a_prediction_of_another_dialogue_is_refused() -> None:
    with pytest.raises(ValueError, match="e is not of d"):
        Case(dialogue(*GOLD), prediction(*GOLD, ident="e"))


def test_unread_turns_have_no_calibration() -> None:
    unread = Prediction("d", (PredictedTurn(index=0, holder="a", before=UNK, stance=UNK),))
    assert math.isnan(figures(Case(dialogue(("a", SUP)), unread))["expressed_brier"])
