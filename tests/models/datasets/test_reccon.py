from typing import Any

import pytest

from models.datasets import reccon
from models.datasets.dialogue import Dialogue
from models.datasets.files import Malformed
from models.datasets.labels import Mention
from tests.models.datasets.putting import Put
from tracker.stances import Emotion


def _turn(turn: int, speaker: str, text: str, emotion: str, *causes: tuple[Any, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {"turn": turn, "speaker": speaker, "utterance": text, "emotion": emotion}
    if causes:
        fields["expanded emotion cause evidence"] = [number for number, _ in causes]
        fields["expanded emotion cause span"] = [span for _, span in causes]
        fields["type"] = ["no-context", "latent"]
    return fields


def _load(put: Put, *turns: dict[str, Any]) -> list[Dialogue]:
    return list(reccon.load(put("dailydialog_valid.json", {"va_1": [list(turns)]}), "dev"))


def test_causes_are_places_in_turns_counted_from_0(put: Put) -> None:
    (dialogue,) = _load(
        put,
        _turn(1, "A", "The train is late again .", "neutral"),
        _turn(2, "B", "Oh no !", "angry", (1, "late again"), (2, "Oh no !")),
    )
    turn = dialogue.turns[1]
    assert turn.emotion is Emotion.ANGER
    assert turn.causes == (Mention("late again", 0, 13, 23), Mention("Oh no !", 1, 0, 7))
    assert turn.cause_kinds == ("no-context", "latent")
    assert dialogue.turns[0].text[13:23] == "late again"


def test_latent_causes_and_causes_after_the_effect_have_no_place(put: Put) -> None:
    (dialogue,) = _load(
        put,
        _turn(1, "A", "Great .", "happy", ("b", "b"), (2, "You won .")),
        _turn(2, "B", "You won .", "happiness"),
    )
    assert dialogue.turns[0].causes == ()
    assert dialogue.turns[0].cause_kinds == ("no-context", "latent")


@pytest.mark.parametrize(
    "turn",
    [
        _turn(1, "A", "Hm .", "fear", (1, "elsewhere")),
        _turn(2, "A", "Hm .", "fear"),
        _turn(1, "A", "Hm", "x"),
    ],
)
def test_another_form_is_malformed(put: Put, turn: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match="va_1"):
        _load(put, turn)
