import msgspec
import pytest

from models.datasets.dialogue import Dialogue, LabelledTurn, fingerprint, proposition_about
from models.datasets.labels import EmotionFlip, Mention, Opinion, emotion_of
from tracker.stances import Emotion, Sentiment


def _dialogue(*texts: str) -> Dialogue:
    turns = tuple(LabelledTurn(index=index, speaker="a", text=text) for index, text in enumerate(texts))
    return Dialogue(id="x", source="x", language="en", turns=turns)


def test_a_fingerprint_sees_through_spaces_and_punctuation() -> None:
    assert fingerprint(_dialogue("Don ’ t !", "Why ?")) == fingerprint(_dialogue("Don't!", "why"))
    assert fingerprint(_dialogue("Do")) != fingerprint(_dialogue("Don't"))


def test_a_bare_target_becomes_a_debate() -> None:
    assert proposition_about("trams", "en") == "The debate concerning whether to be in favour of trams"
    assert proposition_about("有轨电车", "zh") == "关于是否支持“有轨电车”的讨论"


def test_the_form_survives_json() -> None:
    opinion = Opinion(holder="a", target=Mention("it", 0, 3, 5, True), sentiment=Sentiment.NEGATIVE)
    flip = EmotionFlip(turn=1, before=Emotion.JOY, after=Emotion.FEAR, trigger_turns=(0,))
    dialogue = msgspec.structs.replace(_dialogue("On it"), opinions=(opinion,), emotion_flips=(flip,))
    assert msgspec.json.decode(msgspec.json.encode(dialogue), type=Dialogue) == dialogue


def test_emotions_in_other_words() -> None:
    assert [emotion_of(word) for word in ("happiness", "excited", " Sad", "calm", "fearful")] == [
        Emotion.JOY,
        Emotion.JOY,
        Emotion.SADNESS,
        Emotion.NEUTRAL,
        Emotion.FEAR,
    ]
    with pytest.raises(ValueError, match="no emotion: 'hungry'"):
        emotion_of("hungry")
