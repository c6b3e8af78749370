"""What the reader says: observations of turns, explanations of flips, and the marks they carry."""

import enum
import math
from collections.abc import Mapping

import msgspec

from tracker.stances import Emotion, Expressed, Sentiment, Stance, TriggerKind

SUM_TOLERANCE = 1e-3


class Mark(enum.StrEnum):
    """What a reader of an event should know about how it came to be."""

    LATE = "late"  # older than the conversation's newest turn
    CLAMPED = "clamped"  # sent_at lay in the future and was set to the receipt time
    STALE = "stale"  # folded under another state than it was read under
    REPLY_MISSING = "reply_missing"  # the turn replied to is not in the window
    MEDIA_MISSING = "media_missing"  # media without description that no encoder read
    FALLBACK = "fallback"  # another engine or adapter than the one asked for
    REFINED = "refined"  # the critic had it read a second time
    UNTRAINED = "untrained"  # the model has learned nothing about stance yet


class Critic(enum.StrEnum):
    """What verification did with an explanation."""

    PASSED = "passed"
    REFINED = "refined"
    NONE = "none"


class Model(msgspec.Struct, frozen=True):
    """Who read: model name, revision, engine (rule, generative, encoder, remote) and language."""

    name: str
    revision: str
    engine: str
    language: str


def primary(tag: str) -> str:
    """A BCP 47 tag's primary subtag, in lower case: `en` of `en-GB`; languages are compared by it."""
    return tag.replace("_", "-").split("-")[0].lower()


class Probabilities(msgspec.Struct, frozen=True):
    """A distribution over what a turn expresses; sums to 1 within 1e-3, each in [0, 1]."""

    support: float = 0.0
    oppose: float = 0.0
    neutral: float = 0.0
    none: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no distribution (msgspec turns ValueError into ValidationError)."""
        values = (self.support, self.oppose, self.neutral, self.none)
        if not all(0.0 <= value <= 1.0 for value in values):
            raise ValueError(f"probabilities lie in 0..1, got {values}")
        if not math.isclose(sum(values), 1.0, abs_tol=SUM_TOLERANCE):
            raise ValueError(f"probabilities sum to 1, got {sum(values):.4f}")

    @classmethod
    def of(cls, values: Mapping[Expressed, float]) -> "Probabilities":
        """A distribution from label to probability; missing labels are 0."""
        return cls(**{label.value: float(value) for label, value in values.items()})

    def __getitem__(self, label: Expressed) -> float:
        """The probability of one label."""
        value: float = getattr(self, label.value)
        return value

    def ranked(self) -> list[tuple[Expressed, float]]:
        """Labels from the most to the least probable; ties in the order of Expressed."""
        return sorted(((label, self[label]) for label in Expressed), key=lambda pair: -pair[1])


class Observation(msgspec.Struct, frozen=True):
    """What the reader says about one turn for one target; `expressed` is what the machine folds."""

    turn: str
    revision: int
    target: str
    holder: str
    expressed: Probabilities
    emotion: Emotion
    sentiment: Sentiment
    relevance: float  # 0..1: how much the turn is about the target
    read_under: Stance  # the holder's state the reader was shown
    model: Model
    marks: tuple[Mark, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a relevance outside 0..1."""
        if not 0.0 <= self.relevance <= 1.0:
            raise ValueError(f"relevance lies in 0..1, got {self.relevance}")


class Trigger(msgspec.Struct, frozen=True):
    """What moved the holder: kind, the turns that carry it, their holders, and a probability."""

    kind: TriggerKind
    turns: tuple[str, ...]
    holders: tuple[str, ...]
    confidence: float


class Evidence(msgspec.Struct, frozen=True):
    """Where the change shows: a turn, and text or a media item's modality."""

    turn: str
    modality: str


class Explanation(msgspec.Struct, frozen=True):
    """Why a flip happened. `refined` replaces the observation, folded once from the state before."""

    turn: str
    target: str
    trigger: Trigger
    evidence: tuple[Evidence, ...]
    rationale: str
    critic: Critic = Critic.NONE
    refined: Observation | None = None
