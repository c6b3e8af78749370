"""Free text of a generative model as StanceFlip's tuples: every label mapped as appendix D maps it.

What maps onto no label stays as it is written, normalised: a wrong prediction, not a missing one.
"""

import enum
from collections.abc import Mapping

from models.evaluation import keywords
from models.evaluation.normalisation import normalised
from models.evaluation.stanceflip import Flip, Sextuple
from tracker.stances import Emotion, Sentiment


def sextuple(fields: Mapping[str, str], *, turn: int | None = None, flip: bool | None = None) -> Sextuple:
    """A sextuple from its texts by name; `holder` must be there, an empty text is as good as none."""
    said = {name: text for name, text in fields.items() if normalised(text)}
    return Sextuple(
        holder=said["holder"],
        target=said.get("target"),
        emotion=_label(said.get("emotion"), Emotion),
        sentiment=_label(said.get("sentiment"), Sentiment),
        stance=_stance(said["stance"]) if "stance" in said else None,
        rationale=said.get("rationale"),
        flip=flip,
        turn=turn,
    )


def flip(before: str, after: str, trigger: str | None) -> Flip:
    """A flip from its texts."""
    kind = None if trigger is None else keywords.trigger(trigger) or normalised(trigger)
    return Flip(_stance(before), _stance(after), kind)


def _stance(text: str) -> str:
    return keywords.stance(text) or normalised(text)


def _label(text: str | None, labels: type[enum.StrEnum]) -> str | None:
    """Emotions and sentiments by name: D.2 has keywords for stances and triggers alone."""
    if text is None:
        return None
    plain = normalised(text)
    return next((label for label in labels if label.value == plain), plain)
