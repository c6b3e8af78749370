"""PanoSent's sextuples and flips, whose words and keys are spelled in many ways, in one form."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from models.datasets.labels import Mention, Opinion, SentimentFlip, SentimentTrigger
from tracker.stances import Sentiment

# Looked for in this order: "Person Feedback and Interaction" is feedback, not experience.
_TRIGGERS = (
    ("feedback", SentimentTrigger.FEEDBACK),
    ("new information", SentimentTrigger.NEW_INFORMATION),
    ("argumentation", SentimentTrigger.ARGUMENTATION),
    ("personal", SentimentTrigger.EXPERIENCE),
    ("reevaluation", SentimentTrigger.EXPERIENCE),  # "... due to a deeper understanding": self-reflection
)


def trigger_of(word: object) -> SentimentTrigger | None:
    """The trigger that any of the spellings means; None for what is none of the four."""
    plain = str(word).lower().replace("-", "")
    return next((trigger for part, trigger in _TRIGGERS if part in plain), None)


def sentiment_of(word: object) -> Sentiment | None:
    """One of the three classes; None for others ("mixed", "initially positive", "reflective")."""
    try:
        return Sentiment(str(word).strip().lower())
    except ValueError:
        return None


def opinions(hexatuples: list[Any]) -> Iterator[Opinion]:
    """The sextuples; an element that is missing, or has no value, is None."""
    for item in hexatuples:
        if isinstance(item, dict):
            holder = _mention(item.get("holder"))
            yield Opinion(
                holder=holder.text if holder else None,
                target=_mention(item.get("target")),
                aspect=_mention(item.get("aspect")),
                opinion=_mention(item.get("opinion")),
                sentiment=sentiment_of(item.get("sentiment")),
                rationale=_mention(item.get("rationale")),
            )


def _mention(element: object) -> Mention | None:
    if not isinstance(element, dict) or not isinstance(value := element.get("value"), str):
        return None
    if not (text := strip_tags(value)) or text.lower() == "none":
        return None
    manner = str(element.get("manner")).lower()
    # Also "explciit" and "implicitly"; "implicitly explicit", a sentiment or nothing say neither.
    implicit, explicit = manner.startswith("impl"), "expl" in manner
    return Mention(text, explicit=explicit if explicit is not implicit else None)


def flips(value: object) -> Iterator[SentimentFlip]:
    """The flips in a list, a dict, a string or null.

    What has no two different classes is none: three in a hundred "flips" go from positive to positive.
    """
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict) and (flip := _flip(item)):
            yield flip


def _flip(item: Mapping[str, object]) -> SentimentFlip | None:
    before = sentiment_of(item.get("initial sentiment"))
    after = sentiment_of(item.get("flipped sentiment"))
    holder = item.get("holder")
    if before is None or after is None or before is after or not isinstance(holder, str):
        return None
    return SentimentFlip(
        holder=holder,
        target=str(item.get("target") or ""),
        aspect=str(item.get("aspect") or ""),
        before=before,
        after=after,
        trigger=trigger_of(item.get("trigger type")),
    )


_CAPTION = re.compile(r"\s*<(img|vid|audio|video|caption)>\s*(?P<words>[^<]*)</\1>", re.IGNORECASE)
_OPENING = re.compile(r"<[a-z]+(_[a-z]+)*(_?\d+)?>\s*", re.IGNORECASE)
_CLOSING = re.compile(r"\s*</[a-z]+(_[a-z]+)*(_?\d+)?>", re.IGNORECASE)
_LONGEST_INLINE = 5  # words; longer is a caption, which belongs to the media


def strip_tags(text: str) -> str:
    """The text without label tags, and without captions that were written into it."""
    text = _CAPTION.sub(lambda match: _inline(match["words"]), text)
    text = _CLOSING.sub("", _OPENING.sub("", text))
    return re.sub(r"(?<=[.!?])\s*\.$", "", re.sub(r"\s{2,}", " ", text)).strip()


def _inline(words: str) -> str:
    return f" {words.strip()}" if 0 < len(words.split()) <= _LONGEST_INLINE else ""
