"""What holds for every dialogue and every reading of it."""

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from models.evaluation import live, stanceflip
from models.evaluation.bootstrap import Resampling
from models.evaluation.extraction import extraction
from models.evaluation.judge import ContainmentJudge, Verdicts
from models.evaluation.prediction import Case
from models.evaluation.report import Run, report
from tests.models.evaluation.build import cases, corpora, prediction

ERRORS = {
    "false_flips_per_1000_turns",
    "detection_delay_turns",
    "expressed_calibration_error",
    "expressed_brier",
}


def figures(found: list[Case]) -> dict[str, float]:
    extracted = [extraction(case) for case in found]
    verdicts = Verdicts(
        ContainmentJudge(), (asked for one in extracted for asked in stanceflip.questions(one))
    )
    theirs = {f"paper {one.name}": one.of(extracted) for one in stanceflip.measures(verdicts)}
    return {one.name: one.of(found) for one in live.MEASURES} | theirs


@given(cases())
def test_the_labels_themselves_are_perfect(found: Case) -> None:
    lines = [(turn.speaker, turn.stance) for turn in found.dialogue.turns]
    perfect = Case(found.dialogue, prediction(*lines))
    for name, figure in figures([perfect]).items():
        assert math.isnan(figure) or figure == (0.0 if name in ERRORS else 1.0), name


@given(cases())
def test_figures_lie_in_their_range(found: Case) -> None:
    for name, figure in figures([found]).items():
        most = {"false_flips_per_1000_turns": 1000.0, "expressed_brier": 2.0, "detection_delay_turns": 8.0}
        assert math.isnan(figure) or 0.0 <= figure <= most.get(name, 1.0), name


@given(cases())
def test_each_kind_of_hit_is_rarer_than_the_one_before(found: Case) -> None:
    got = figures([found])
    if not math.isnan(got["flip_any_f1"]):
        assert got["flip_any_f1"] >= got["flip_exact_f1"]
        assert got["flip_exact_f1"] >= max(got["flip_trigger_f1"], got["flip_trigger_turn_f1"])


@given(corpora(), st.randoms())
def test_the_order_of_dialogues_and_predictions_moves_nothing(
    found: list[Case], chance: random.Random
) -> None:
    def made(ordered: list[Case]) -> object:
        shuffled = [case.prediction for case in ordered]
        chance.shuffle(shuffled)
        runs = [Run("a", shuffled, "p")]
        dialogues = [case.dialogue for case in ordered]
        return report(dialogues, runs, ContainmentJudge(), Resampling(20), data="d", split="test")

    other = list(found)
    chance.shuffle(other)
    assert made(found) == made(other)
