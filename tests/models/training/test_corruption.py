import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from models.datasets.dialogue import Dialogue
from models.language.budget import name
from models.training.corruption import CORRECT, CRITICISE, EXTRACT, corrections, corrupted
from models.training.transcript import Sextuple, line, sextuples
from tests.models.training.flips import explained
from tracker.stances import DEFINITE, Emotion, Sentiment, Stance, TriggerKind

NAMES = some.text(min_size=1, max_size=60)
DEFINITES = sorted(DEFINITE)


@some.composite
def truths(draw: some.DrawFn) -> Sextuple:
    stance = draw(some.sampled_from(DEFINITES))
    before = draw(some.none() | some.sampled_from([one for one in DEFINITES if one is not stance]))
    return Sextuple(
        turn=draw(some.integers(0, 20)),
        holder=draw(NAMES),
        target=draw(some.text(max_size=80) | some.sampled_from(["something", "某件事", "algo"])),
        emotion=draw(some.none() | some.sampled_from(Emotion)),
        sentiment=draw(some.none() | some.sampled_from(Sentiment)),
        stance=stance,
        rationale=draw(some.none() | NAMES),
        before=before,
        trigger=draw(some.sampled_from(TriggerKind)) if before else None,
    )


@given(truths(), some.lists(NAMES, max_size=3), some.sampled_from(["en", "zh", "es", "fr"]), some.integers())
def test_a_corruption_differs_from_the_truth_in_its_fault_alone(
    truth: Sextuple, others: list[str], language: str, seed: int
) -> None:
    speakers = [truth.holder, *others]
    made = corrupted(truth, speakers, language, random.Random(seed))
    differing = [
        field for field in Sextuple.__struct_fields__ if getattr(made.wrong, field) != getattr(truth, field)
    ]
    assert differing == [made.fault]
    assert line(made.wrong) != line(truth)
    assert made.truth == truth
    assert made.wrong.stance in DEFINITE
    assert truth.before is None or made.wrong.stance is not truth.before
    if made.fault == "holder":
        assert made.wrong.holder in speakers
        assert len({name(speaker) for speaker in speakers}) > 1


@given(truths(), some.integers())
def test_holders_are_swapped_only_where_two_speak(truth: Sextuple, seed: int) -> None:
    assert corrupted(truth, [truth.holder], "en", random.Random(seed)).fault != "holder"


@pytest.mark.parametrize(
    ("stance", "wrong"), [(Stance.SUPPORT, Stance.OPPOSE), (Stance.OPPOSE, Stance.SUPPORT)]
)
def test_stances_are_inverted(stance: Stance, wrong: Stance) -> None:
    about = {"turn": 0, "holder": "a", "target": "t", "emotion": None, "sentiment": None, "rationale": None}
    found = [corrupted(Sextuple(stance=stance, **about), ["a"], "en", random.Random(at)) for at in range(20)]
    assert {one.wrong.stance for one in found if one.fault == "stance"} == {wrong}


def test_a_corrected_answer_is_the_truth_and_its_prompt_holds_the_feedback() -> None:
    dialogues = explained(6)
    made = corrections(dialogues, above=-1.0, seed=0)
    gold = {line(one) for dialogue in dialogues for one in sextuples(dialogue)}
    criticised = [one for one in made if one.instruction == CRITICISE]
    mended = [one for one in made if one.instruction == CORRECT]
    assert sum(one.instruction == EXTRACT for one in made) == len(dialogues)
    assert len(criticised) == len(mended) == sum(len(list(sextuples(one))) for one in dialogues)
    assert {one.answer for one in mended} == gold
    for feedback, correction in zip(criticised, mended, strict=True):
        assert correction.shown == f"{feedback.shown}\nFeedback: {feedback.answer}"
        assert feedback.shown.splitlines()[-1].removeprefix("Extracted: ") not in gold


def test_down_sampling_keeps_pairs_by_chance_and_by_seed() -> None:
    dialogues = explained(200)
    every, kept = (len(corrections(dialogues, above, seed=0)) - 200 for above in (-1.0, 0.4))
    assert kept / every == pytest.approx(0.6, abs=0.08)
    assert kept % 2 == 0
    assert corrections(dialogues, 0.4, seed=1) == corrections(dialogues, 0.4, seed=1)
    assert corrections(dialogues, 0.4, seed=1) != corrections(dialogues, 0.4, seed=2)
    alone = corrections(dialogues[7:8], 0.4, seed=0)
    made = corrections(dialogues, 0.4, seed=0)
    assert all(one in made for one in alone)


def test_feedback_is_in_the_dialogues_language() -> None:
    (talk, *_) = explained(1)
    said = {
        language: {
            one.answer for seed in range(20)
            for one in corrections([_in(talk, language)], -1.0, seed) if one.instruction == CRITICISE
        }
        for language in ("en", "zh", "es")
    }  # fmt: skip
    assert "The stance is wrong: after turn 1, Maya's position is support, not oppose." in said["en"]
    assert "持有者不对：第1条是Maya说的，不是Tom。" in said["zh"]
    assert "El objetivo es demasiado vago: «algo» no nombra ninguna cuestión. Es: get a dog 0" in said["es"]


def test_feedback_names_holders_as_the_dialogue_shows_them() -> None:
    (talk, *_) = explained(1)
    longer = {"Maya": "M" * 200, "Tom": "T" * 200}
    turns = tuple(msgspec.structs.replace(turn, speaker=longer[turn.speaker]) for turn in talk.turns)
    long = msgspec.structs.replace(talk, turns=turns)
    said = [one.answer for seed in range(20) for one in corrections([long], -1.0, seed)]
    assert any(name(longer["Tom"]) in text for text in said if text.startswith("The holder"))
    assert not any(full in text for text in said for full in longer.values())


def _in(talk: Dialogue, language: str) -> Dialogue:
    return msgspec.structs.replace(talk, language=language)
