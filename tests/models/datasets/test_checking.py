from typing import Any

import msgspec
import pytest

from models.datasets.checking import problems
from models.datasets.dialogue import Dialogue, LabelledTurn
from tracker.records import Media, Modality
from tracker.stances import Emotion, Expressed, Sentiment, Stance, TriggerKind


def _turn(index: int, speaker: str, expressed: Expressed, stance: Stance, **fields: Any) -> LabelledTurn:
    labels: dict[str, Any] = {"emotion": Emotion.NEUTRAL, "sentiment": Sentiment.NEUTRAL, "flip": False}
    labels |= {"text": "Words.", "expressed": expressed, "stance": stance}
    return LabelledTurn(index=index, speaker=speaker, **(labels | fields))


FLIP: dict[str, Any] = {
    **{"flip": True, "trigger": TriggerKind.SOCIAL_INFLUENCE, "trigger_turns": (1,), "rationale": "All do."}
}
RIGHT = Dialogue(
    id="x-1",
    source="benchmark",
    language="en",
    split="train",
    proposition="Whether trams",
    register="forum",
    domain="Town",
    turns=(
        _turn(0, "Ana", Expressed.SUPPORT, Stance.SUPPORT),
        _turn(1, "Bo", Expressed.NONE, Stance.UNKNOWN, reply_to=0),
        _turn(2, "Ana", Expressed.NONE, Stance.SUPPORT),
        _turn(3, "Ana", Expressed.OPPOSE, Stance.OPPOSE, **FLIP),
        _turn(4, "Ana", Expressed.OPPOSE, Stance.OPPOSE),
    ),
)


def _with(place: int, /, **fields: Any) -> Dialogue:
    turns = list(RIGHT.turns)
    turns[place] = msgspec.structs.replace(turns[place], **fields)
    return msgspec.structs.replace(RIGHT, turns=tuple(turns))


def test_what_obeys_the_guide_has_no_problem() -> None:
    assert list(problems(RIGHT)) == []


@pytest.mark.parametrize(
    ("index", "fields", "problem"),
    [
        (1, {"index": 5}, "turn 1: wrong index"),
        (1, {"reply_to": 1}, "turn 1: answers no earlier turn"),
        (1, {"text": " "}, "turn 1: empty"),
        (
            1,
            {"media": (Media(Modality.IMAGE, description="Tram"),)},
            "turn 1: a media description of 1 words",
        ),
        (1, {"media": (Media(Modality.IMAGE),)}, "turn 1: a media description of 0 words"),
        (1, {"emotion": None}, "turn 1: a label is missing"),
        (4, {"stance": Stance.UNKNOWN, "expressed": Expressed.NONE}, "turn 4: a known stance became unknown"),
        (1, {"expressed": Expressed.SUPPORT}, "turn 1: expressed support where unknown became unknown"),
        (3, {"expressed": Expressed.NONE}, "turn 3: expressed none where support became oppose"),
        (2, {"expressed": Expressed.OPPOSE}, "turn 2: expressed oppose where support became support"),
        (3, {"flip": False}, "turn 3: flip is False where support became oppose"),
        (0, {"flip": True}, "turn 0: flip is True where unknown became support"),
        (3, {"trigger": None}, "turn 3: a flip without a trigger"),
        (3, {"trigger_turns": ()}, "turn 3: trigger turns ()"),
        (3, {"trigger_turns": (4,)}, "turn 3: trigger turns (4,)"),
        (3, {"rationale": None}, "turn 3: a flip without a rationale"),
        (4, {"trigger_turns": (1,)}, "turn 4: a trigger without a flip"),
    ],
)
def test_each_broken_rule_is_named(index: int, fields: dict[str, Any], problem: str) -> None:
    assert problem in list(problems(_with(index, **fields)))


def test_descriptions_without_spaces_have_no_words_to_count() -> None:
    media = (Media(Modality.IMAGE, description="一辆着火的电车停在街上"),)
    assert list(problems(msgspec.structs.replace(_with(1, media=media), language="zh"))) == []


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"split": "validation"}, "split 'validation'"),
        ({"proposition": None}, "no proposition"),
        ({"turns": RIGHT.turns[:2]}, "2 turns"),
    ],
)
def test_the_dialogue_itself_is_looked_at(fields: dict[str, Any], problem: str) -> None:
    assert list(problems(msgspec.structs.replace(RIGHT, **fields))) == [problem]
