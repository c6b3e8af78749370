import random

import msgspec
import pytest

from models.datasets.dialogue import Dialogue
from models.language.budget import name
from models.reasoning.room import Room
from models.training.drafts import CRITERION, Flawed, Truth, corrupted, numbers, truths
from models.training.feedback import Fault
from tests.models.training.flips import RATIONALE, explained
from tests.models.training.talks import talk
from tracker.stances import DEFINITE, Emotion, Stance, TriggerKind

ROOM = Room()
CHANCES = [random.Random(seed) for seed in range(60)]


def told(dialogue: Dialogue, words: str = RATIONALE) -> Dialogue:
    """Every turn with a rationale, not the flips' alone."""
    turns = tuple(msgspec.structs.replace(turn, rationale=words) for turn in dialogue.turns)
    return msgspec.structs.replace(dialogue, turns=turns)


def flip(words: str = RATIONALE, language: str = "en") -> Truth:
    dialogue = told(talk("dog0", Stance.SUPPORT, Stance.OPPOSE, language=language), words)
    (truth,) = truths(dialogue, ROOM, random.Random(0))
    return truth


def flaw(fault: Fault, truth: Truth) -> Flawed:
    return next(one for one in (corrupted(truth, chance) for chance in CHANCES) if one.fault == fault)


def test_a_flips_truth_is_its_labels() -> None:
    truth = flip()
    trigger = truth.draft.trigger
    assert (truth.change.request.state, truth.change.after) == (Stance.SUPPORT, Stance.OPPOSE)
    assert (trigger.kind, trigger.turns, trigger.holders) == (TriggerKind.FACTUAL_LOGICAL, ("2",), ("Tom",))
    assert truth.draft.rationale == RATIONALE
    assert truth.flips
    assert numbers(truth.change) == {"0": "1", "1": "2", "2": "3", "3": "4"}


def test_a_turn_that_moves_nobody_has_a_truth_where_its_holder_stands_somewhere() -> None:
    dialogue = told(talk("dog0", Stance.SUPPORT, Stance.UNKNOWN, Stance.SUPPORT))
    found = list(truths(dialogue, ROOM, random.Random(0)))
    assert [one.change.request.turn.turn for one in found] == ["3", "5"]  # neither Tom's nor the first
    assert not any(one.flips for one in found)
    assert {corrupted(one, chance).fault for one in found for chance in CHANCES} == {"stance"}


@pytest.mark.parametrize("missing", [
    {"rationale": None}, {"rationale": " \n"}, {"emotion": None}, {"sentiment": None}, {"trigger": None},
    {"trigger_turns": ()},
])  # fmt: skip
def test_what_is_not_labelled_whole_has_none(missing: dict[str, object]) -> None:
    dialogue = told(talk("dog0", Stance.SUPPORT, Stance.OPPOSE))
    turns = tuple(msgspec.structs.replace(turn, **missing) for turn in dialogue.turns)
    assert not list(truths(msgspec.structs.replace(dialogue, turns=turns), ROOM, random.Random(0)))


def test_a_trigger_that_is_no_longer_shown_is_none() -> None:
    long = "word " * 2000
    dialogue = told(talk("dog0", Stance.SUPPORT, Stance.OPPOSE))
    turns = tuple(
        msgspec.structs.replace(turn, text=long, trigger_turns=(0,) if turn.flip else ())
        for turn in dialogue.turns
    )
    assert not list(truths(msgspec.structs.replace(dialogue, turns=turns), Room(128), random.Random(0)))


def test_every_fault_is_made_and_fails_a_criterion_of_its_own() -> None:
    assert {corrupted(flip(), chance).fault for chance in CHANCES} == set(CRITERION)
    assert sorted(CRITERION.values()) == sorted(["target", "stance", "evidence"])


def test_a_wrong_stance_is_neither_left_nor_reached_and_the_draft_stays() -> None:
    truth = flip()
    made = flaw("stance", truth)
    assert made.change == msgspec.structs.replace(truth.change, after=Stance.NEUTRAL)
    assert made.draft == truth.draft
    assert made.said == "The stance is wrong: after turn 4, Maya's position is oppose, not neutral."


@pytest.mark.parametrize("held", sorted(DEFINITE))
def test_where_nobody_moved_a_wrong_stance_is_a_flip(held: Stance) -> None:
    truth = flip()
    request = msgspec.structs.replace(truth.change.request, state=held)
    still = msgspec.structs.replace(
        truth, change=msgspec.structs.replace(truth.change, request=request, after=held)
    )
    assert all(corrupted(still, chance).change.after in DEFINITE - {held} for chance in CHANCES)


def test_a_wrong_target_is_vague_words_alone() -> None:
    truth = flip()
    made = flaw("target", truth)
    assert (made.change, made.draft.trigger) == (truth.change, truth.draft.trigger)
    assert made.draft.rationale == "Maya sees something differently now."
    assert made.said == "The target is too vague: “something” names no question. It is: get a dog 0"


def test_a_wrong_mover_is_another_participants_turn_and_named_in_the_words() -> None:
    truth = flip()
    made = flaw("mover", truth)
    assert made.change == truth.change
    assert made.draft.trigger.holders == ("Maya",)
    assert made.draft.trigger.turns[0] in {"1", "3"}
    assert made.draft.rationale == "Maya counts."
    number = numbers(truth.change)[made.draft.trigger.turns[0]]
    assert made.said == f"The cause is wrong: what moved Maya stands in turn 3, not in turn {number}."


def test_who_carried_the_trigger_too_is_no_wrong_mover() -> None:
    alone = msgspec.structs.replace(flip(), sources=frozenset(numbers(flip().change)))
    assert {corrupted(alone, chance).fault for chance in CHANCES} == {"target", "stance"}


def test_who_is_shown_under_the_movers_name_is_no_wrong_mover() -> None:
    dialogue = told(talk("dog0", Stance.SUPPORT, Stance.OPPOSE))
    alike = {who: f"{'T' * 40}{who}{'T' * 40}" for who in ("Maya", "Tom")}
    assert len({name(who) for who in alike.values()}) == 1
    turns = tuple(msgspec.structs.replace(turn, speaker=alike[turn.speaker]) for turn in dialogue.turns)
    (truth,) = truths(msgspec.structs.replace(dialogue, turns=turns), ROOM, random.Random(0))
    assert {corrupted(truth, chance).fault for chance in CHANCES} == {"target", "stance"}


def test_feedback_is_in_the_dialogues_language() -> None:
    assert flaw("stance", flip(language="zh")).said == "立场不对：在第4条之后，Maya的立场是反对，不是中立。"
    assert flaw("mover", flip(language="es")).said.startswith(
        "La causa es incorrecta: a Maya lo movió el turno 3"
    )
    assert flaw("target", flip(language="fr")).said.startswith("The target is too vague")


def test_feelings_are_the_labels() -> None:
    (one,) = explained(1)
    (truth,) = truths(one, ROOM, random.Random(0))
    assert truth.change.feelings.emotion is Emotion.JOY
