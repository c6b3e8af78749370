"""StanceFlip's metrics on cases counted by hand."""

import math

import msgspec
import pytest

from models.evaluation.judge import ContainmentJudge, Verdicts
from models.evaluation.stanceflip import PROJECTIONS, Extraction, Flip, Sextuple, measures, questions
from tests.models.evaluation.build import FACT, FEEL, NEU, OPP, PEERS, SUP
from tracker.stances import Emotion, Sentiment

GOLD = Sextuple(
    holder="Speaker 1",
    target="Nuclear power",
    emotion=Emotion.JOY,
    sentiment=Sentiment.POSITIVE,
    stance=SUP,
    rationale="it is clean",
    flip=False,
    turn=0,
)


def said(**changed: object) -> Sextuple:
    return msgspec.structs.replace(GOLD, **changed)


def figures(*extractions: Extraction) -> dict[str, float]:
    verdicts = Verdicts(ContainmentJudge(), (asked for one in extractions for asked in questions(one)))
    return {measure.name: measure.of(extractions) for measure in measures(verdicts)}


def extraction(predicted: list[Sextuple], gold: list[Sextuple]) -> Extraction:
    return Extraction("A: hi", tuple(predicted), tuple(gold))


def flips(predicted: list[Flip], gold: list[Flip]) -> Extraction:
    return Extraction("A: hi", (), (), tuple(predicted), tuple(gold))


def test_a_perfect_extraction() -> None:
    found = figures(extraction([said(holder="s1", target=" NUCLEAR power ")], [GOLD]))
    assert {found[name] for name in PROJECTIONS} == {1.0}


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"holder": "Speaker 2"}, {"item_holder"}),
        ({"target": "Trams"}, {"item_target"}),
        ({"emotion": Emotion.FEAR}, {"item_emotion", "pair_target_emotion"}),
        ({"sentiment": Sentiment.NEGATIVE}, {"item_sentiment", "pair_target_sentiment"}),
        ({"stance": OPP}, {"item_stance", "pair_target_stance", "pair_stance_rationale"}),
        ({"rationale": "cheap"}, {"item_rationale", "pair_stance_rationale"}),
        ({"flip": True}, {"identification_holder_target_stance_flip"}),
    ],
    ids=str,
)
def test_one_wrong_element_fails_what_holds_it(changed: dict[str, object], wrong: set[str]) -> None:
    (field,) = changed
    found = figures(extraction([said(**changed)], [GOLD]))
    assert {name for name in PROJECTIONS if found[name] == 0.0} == {
        name for name, fields in PROJECTIONS.items() if field in fields
    }
    assert wrong <= {name for name in PROJECTIONS if found[name] == 0.0}


def test_the_sextuple_is_the_paper_s() -> None:
    assert PROJECTIONS["sextuple_micro"] == (
        "holder", "target", "emotion", "sentiment", "stance", "rationale",
    )  # fmt: skip
    assert len(PROJECTIONS) == 6 + 4 + 3


def test_the_judge_is_lenient_with_targets_and_rationales_only() -> None:
    found = figures(extraction([said(target="power", rationale="clean", holder="Speaker 11")], [GOLD]))
    assert (found["item_target"], found["item_rationale"], found["item_holder"]) == (1.0, 1.0, 0.0)


def test_turns_are_compared_with_themselves() -> None:
    swapped = extraction([said(stance=OPP), said(turn=1)], [GOLD, said(turn=1, stance=OPP)])
    assert figures(swapped)["item_stance"] == 0.0


def test_without_turns_a_dialogue_is_matched_one_to_one() -> None:
    unplaced = [said(turn=None, stance=OPP), said(turn=None), said(turn=None)]
    found = figures(extraction(unplaced, [said(turn=None), said(turn=None, stance=OPP)]))
    assert found["item_stance"] == pytest.approx(2 * 2 / (3 + 2))


def test_counts_add_up_over_dialogues() -> None:
    right, wrong = extraction([GOLD], [GOLD]), extraction([said(stance=OPP)], [GOLD])
    assert figures(right, right, wrong)["item_stance"] == pytest.approx(2 / 3)


def test_unlabelled_rationales_are_nobodys_fault() -> None:
    later = extraction([GOLD, said(turn=1)], [GOLD, said(turn=1, rationale=None)])
    found = figures(later)
    assert found["item_rationale"] == found["sextuple_micro"] == 1.0


def test_unsaid_rationales_are_missed() -> None:
    found = figures(extraction([said(rationale=None)], [GOLD]))
    assert found["item_rationale"] == found["sextuple_micro"] == 0.0
    assert found["item_stance"] == 1.0


def test_no_predictions_and_no_gold() -> None:
    assert figures(extraction([], [GOLD]))["sextuple_micro"] == 0.0
    assert figures(extraction([GOLD], []))["sextuple_micro"] == 0.0
    assert math.isnan(figures(extraction([], []))["sextuple_micro"])


def test_flips_by_hand() -> None:
    found = figures(
        flips(
            [Flip(SUP, OPP, FACT), Flip(OPP, NEU, FEEL), Flip(SUP, NEU, PEERS)],
            [Flip(SUP, OPP, FEEL), Flip(OPP, NEU, FEEL), Flip(OPP, SUP, FACT)],
        )
    )
    assert found["flip"] == pytest.approx(4 / 6)  # SUP to OPP and OPP to NEU
    assert found["trigger"] == pytest.approx(4 / 6)  # FACT once, FEEL once
    assert found["flip_trigger"] == pytest.approx(2 / 6)  # OPP to NEU by FEEL


def test_flip_trigger_needs_the_initial_stance_only_in_equation_11() -> None:
    found = figures(flips([Flip(NEU, OPP, FACT)], [Flip(SUP, OPP, FACT)]))
    assert (found["flip"], found["flip_trigger"], found["flipped_stance_trigger"]) == (0.0, 0.0, 1.0)


def test_no_flips() -> None:
    assert math.isnan(figures(flips([], []))["flip"])
    assert figures(flips([], [Flip(SUP, OPP, FACT)]))["flip"] == 0.0
    assert figures(flips([Flip(SUP, OPP, None)], []))["flip"] == 0.0
    assert math.isnan(figures(flips([Flip(SUP, OPP, None)], []))["trigger"])


def test_flips_of_different_dialogues_do_not_meet() -> None:
    one, other = flips([Flip(SUP, OPP, FACT)], []), flips([], [Flip(SUP, OPP, FACT)])
    assert figures(one, other)["flip"] == 0.0
