"""The one form that every source's dialogues take; a label that a source does not give is None."""

import msgspec

from tracker.records import Media
from tracker.stances import Emotion, Expressed, Sentiment, Stance, TriggerKind


class LabelledTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn and what annotators said of it; `stance` is the speaker's state after it."""

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


class Dialogue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dialogue of one source; `split` is train, dev or test where the source has parts."""

    id: str
    source: str
    language: str
    split: str | None = None
    proposition: str | None = None
    register: str | None = None
    domain: str | None = None
    turns: tuple[LabelledTurn, ...]
