"""The one form that every source's dialogues take; a label that a source does not give is None or empty."""

import msgspec

from models.datasets.labels import EmotionFlip, Mention, Opinion, SentimentFlip
from tracker.context import WindowTurn
from tracker.records import Media
from tracker.stances import Emotion, Expressed, Sentiment, Stance, TriggerKind


class LabelledTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn and what annotators said of it; `stance` is the speaker's state after it.

    `label` is the source's own word where our enums say less; `acts` are dialogue acts in the source's words;
    `causes` are the places that moved the turn's emotion, `cause_kinds` RECCON's kinds of them, in no order.
    """

    index: int
    speaker: str
    text: str
    reply_to: int | None = None
    media: tuple[Media, ...] = ()
    emotion: Emotion | None = None
    sentiment: Sentiment | None = None
    expressed: Expressed | None = None
    stance: Stance | None = None
    flip: bool | None = None
    trigger: TriggerKind | None = None
    trigger_turns: tuple[int, ...] = ()
    rationale: str | None = None
    label: str | None = None
    acts: tuple[str, ...] = ()
    causes: tuple[Mention, ...] = ()
    cause_kinds: tuple[str, ...] = ()


class Dialogue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dialogue of one source; `split` is train, dev or test: the source's part, else by hash of its id.

    Dialogues of one `group` share turns or content, and whoever splits anew must not part them. Where `named`
    is false the source does not tell who speaks: every turn has a speaker of its own, no state carries over.
    """

    id: str
    source: str
    language: str
    split: str | None = None
    proposition: str | None = None
    register: str | None = None
    domain: str | None = None
    group: str | None = None
    named: bool = True
    turns: tuple[LabelledTurn, ...]
    opinions: tuple[Opinion, ...] = ()
    sentiment_flips: tuple[SentimentFlip, ...] = ()
    emotion_flips: tuple[EmotionFlip, ...] = ()


def shown_turn(turn: LabelledTurn, language: str) -> WindowTurn:
    """The turn as a reader is shown it: without a single label."""
    reply = None if turn.reply_to is None else str(turn.reply_to)
    return WindowTurn(str(turn.index), turn.speaker, turn.text, reply, turn.media, language)


def proposition_about(target: str, language: str) -> str:
    """A debate sentence, as the labelling guide words them, for a source that names a bare target."""
    if language == "zh":
        return f"关于是否支持“{target}”的讨论"
    return f"The debate concerning whether to be in favour of {target}"


def fingerprint(dialogue: Dialogue) -> str:
    """The dialogue's letters and digits: equal where two sources, or two parts, hold the same one."""
    return "".join(c for turn in dialogue.turns for c in turn.text.lower() if c.isalnum())
