import json
from typing import Any

import pytest

from models.datasets import meld_fr
from models.datasets.dialogue import Dialogue
from models.datasets.files import Malformed
from models.datasets.labels import EmotionFlip
from tests.models.datasets.putting import Put
from tracker.stances import Emotion

TURNS = (("Ann", "joy", "It\x92s on"), ("Bob", "neutral", "It\xa0broke"), ("Ann", "anger", "What\x85"))
LATER = (*TURNS, ("Bob", "fear", "Sorry"))


def _episode(name: str, turns: Any, triggers: list[Any]) -> dict[str, Any]:
    speakers, emotions, utterances = (list(column) for column in zip(*turns, strict=True))
    lists = {"speakers": speakers, "emotions": emotions, "utterances": utterances}
    return {"episode": name, **lists, "triggers": triggers}


FIRST = _episode("utterance_0", TURNS, [0.0, 1.0, 0.0])
NESTED = _episode("utterance_1", LATER, [float("nan"), 0.0, 1.0, 1.0])
OTHER = _episode("utterance_2", [("Cy", "joy", "Hi"), ("Cy", "sadness", "Oh")], [0.0, 0.0])


def _load(put: Put, *episodes: dict[str, Any]) -> list[Dialogue]:
    return list(meld_fr.load(put("MELD_dev_efr.json", json.dumps(episodes)), "dev"))


def test_nested_episodes_are_one_dialogue_with_all_their_flips(put: Put) -> None:
    first, second = _load(put, FIRST, NESTED, OTHER)
    assert [turn.speaker for turn in first.turns] == ["Ann", "Bob", "Ann", "Bob"]
    assert first.emotion_flips == (
        EmotionFlip(turn=2, before=Emotion.JOY, after=Emotion.ANGER, trigger_turns=(1,)),
        EmotionFlip(turn=3, before=Emotion.NEUTRAL, after=Emotion.FEAR, trigger_turns=(2, 3), unmarked=(0,)),
    )
    assert (second.id, second.emotion_flips[0].trigger_turns) == ("meld-fr-dev-utterance_2", ())


def test_a_repeated_episode_adds_nothing(put: Put) -> None:
    (dialogue,) = _load(put, FIRST, FIRST)
    assert len(dialogue.emotion_flips) == 1


def test_cp1252_read_as_latin_1_is_mended(put: Put) -> None:
    (dialogue,) = _load(put, FIRST)
    assert [turn.text for turn in dialogue.turns] == ["It’s on", "It broke", "What…"]


def test_nests_that_begin_alike_are_one_group(put: Put) -> None:
    fork = _episode("utterance_3", [*TURNS, ("Bob", "joy", "No")], [0.0, 0.0, 1.0, 0.0])
    first, second = _load(put, NESTED, fork)
    assert first.group == second.group
    assert first.id != second.id


@pytest.mark.parametrize("change", [{"triggers": [0.0]}, {"emotions": ["joy", "joy", "hungry"]}])
def test_another_form_is_malformed(put: Put, change: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match="utterance_0"):
        _load(put, FIRST | change)
