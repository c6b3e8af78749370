"""StanceFlip appendix D.2: keywords that map free text onto the closed sets of stances and triggers.

The appendix gives buckets without an order, and they collide: "disagree" contains "agree", "conclusion"
contains "con", "experience of social pressure" names two triggers. Here the longest keyword decides, and of
equally long ones the earliest. Where one bucket alone matches, this is the appendix to the letter.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from models.evaluation.normalisation import normalised
from tracker.stances import Stance, TriggerKind

Label = TypeVar("Label")

STANCES: Mapping[Stance, tuple[str, ...]] = {
    Stance.SUPPORT: ("support", "agree", "pro", "positive"),
    Stance.OPPOSE: ("oppose", "disagree", "con", "negative", "refus"),
    Stance.NEUTRAL: ("neutral",),
    Stance.UNKNOWN: ("unknown",),  # a state of section 3.1 for which D.2 has no bucket
}
TRIGGERS: Mapping[TriggerKind, tuple[str, ...]] = {
    TriggerKind.FACTUAL_LOGICAL: ("fact", "logic", "evidence", "data", "stat"),
    TriggerKind.EMOTIONAL_VALUE: ("emotion", "value", "moral", "empathy", "fear"),
    TriggerKind.PERSONAL_EXPERIENCE: ("experi", "story", "anecdote", "life"),
    TriggerKind.SOCIAL_INFLUENCE: ("social", "pressure", "group", "norm", "peer"),
}


def stance(text: str) -> Stance | None:
    """The stance that a text names, by keyword (D.2, stance mapping)."""
    return _named(text, STANCES)


def trigger(text: str) -> TriggerKind | None:
    """The trigger category that a text names, by keyword (D.2, trigger categorization)."""
    return _named(text, TRIGGERS)


def _named(text: str, buckets: Mapping[Label, tuple[str, ...]]) -> Label | None:
    found = sorted(_found(normalised(text), buckets), key=lambda hit: hit[:2])
    return found[0][2] if found else None


def _found(text: str, buckets: Mapping[Label, tuple[str, ...]]) -> Iterator[tuple[int, int, Label]]:
    """(minus the keyword's length, where it stands, what it names) of every keyword in the text."""
    for label, words in buckets.items():
        for word in words:
            if (at := text.find(word)) >= 0:
                yield -len(word), at, label
