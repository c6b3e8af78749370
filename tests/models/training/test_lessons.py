import msgspec

from models.training import transcript
from models.training.lessons import Cause, Reading, Reason, Text, lessons
from tests.models.training.flips import RATIONALE, explained
from tracker.stances import Stance, TriggerKind

(TALK, *_) = explained(1)


def test_every_turn_is_read_and_every_flip_explained() -> None:
    made = lessons([TALK])
    assert sum(isinstance(one, Reading) for one in made) == len(TALK.turns)
    (cause,) = [one for one in made if isinstance(one, Cause)]
    assert (cause.after, cause.example.labels.sources) == (Stance.OPPOSE, {"2"})
    (reason,) = [one for one in made if isinstance(one, Reason)]
    assert (reason.kind, reason.mover, reason.words) == (TriggerKind.FACTUAL_LOGICAL, "2", RATIONALE)


def test_of_a_rationale_the_sentence_that_is_served_is_taught() -> None:
    turns = tuple(
        msgspec.structs.replace(turn, rationale=turn.rationale and "Tom counts. Then he leaves.")
        for turn in TALK.turns
    )
    made = lessons([msgspec.structs.replace(TALK, turns=turns)])
    assert [one.words for one in made if isinstance(one, Reason)] == ["Tom counts."]


def test_a_rationale_of_no_words_teaches_none() -> None:
    turns = tuple(msgspec.structs.replace(turn, rationale=" \n") for turn in TALK.turns)
    made = lessons([msgspec.structs.replace(TALK, turns=turns)])
    assert not any(isinstance(one, Reason) for one in made)
    assert any(isinstance(one, Cause) for one in made)


def test_a_whole_dialogue_is_one_path_in_the_order_of_the_roles() -> None:
    (made,) = lessons([TALK], "dialogue")
    assert isinstance(made, Text)
    assert made.answer.splitlines() == [
        "Cartographer: get a dog 0",
        "Psychologist:",
        '0. "Tom": joy, positive',
        '1. "Maya": joy, positive',
        '2. "Tom": joy, positive',
        '3. "Maya": joy, positive',
        "Analyst:",
        '0. "Tom": unknown',
        '1. "Maya": support',
        '2. "Tom": unknown',
        '3. "Maya": support -> oppose',
    ]
    assert made.instruction == transcript.INSTRUCTION


def test_nothing_that_leaks_labels_is_shown() -> None:
    for form in ("served", "dialogue"):
        assert b"leaks labels" not in msgspec.json.encode(lessons([TALK], form))
