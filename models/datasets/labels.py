"""Labels that only some sources bring: opinions, flips of sentiment and of emotion, places in a text."""

import enum

import msgspec

from tracker.stances import Emotion, Sentiment


class SentimentTrigger(enum.StrEnum):
    """What turns a sentiment, in PanoSent section 3.1: not the four mechanisms of StanceFlip."""

    NEW_INFORMATION = "new_information"
    ARGUMENTATION = "argumentation"
    FEEDBACK = "feedback"
    EXPERIENCE = "experience"


class Mention(msgspec.Struct, frozen=True, omit_defaults=True):
    """Words of a label; with `turn`, they are that turn's text from `start` to `end`.

    `explicit` is None where the source does not say whether the words stand in the dialogue.
    """

    text: str
    turn: int | None = None
    start: int | None = None
    end: int | None = None
    explicit: bool | None = None


class Opinion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who feels what about which aspect of a target, and why: PanoSent's sextuple, DiaASQ's quadruple."""

    holder: str | None = None
    target: Mention | None = None
    aspect: Mention | None = None
    opinion: Mention | None = None
    sentiment: Sentiment | None = None
    rationale: Mention | None = None


class SentimentFlip(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A holder's sentiment turned; PanoSent names neither the turn nor the trigger's."""

    holder: str
    target: str
    aspect: str
    before: Sentiment
    after: Sentiment
    trigger: SentimentTrigger | None = None


class EmotionFlip(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The speaker of `turn` felt otherwise when last speaking; `unmarked` turns may be triggers or not."""

    turn: int
    before: Emotion
    after: Emotion
    trigger_turns: tuple[int, ...] = ()
    unmarked: tuple[int, ...] = ()


_EMOTIONS = {
    **{emotion.value: emotion for emotion in Emotion},
    "happiness": Emotion.JOY,
    "happy": Emotion.JOY,
    "excited": Emotion.JOY,
    "calm": Emotion.NEUTRAL,
    "no emotion": Emotion.NEUTRAL,
    "sad": Emotion.SADNESS,
    "surprised": Emotion.SURPRISE,
    "angry": Emotion.ANGER,
    "fearful": Emotion.FEAR,
}


def emotion_of(word: str) -> Emotion:
    """The emotion that a source's word means. Raises ValueError on a word that no source uses."""
    try:
        return _EMOTIONS[word.strip().lower()]
    except KeyError:
        raise ValueError(f"no emotion: {word!r}") from None
