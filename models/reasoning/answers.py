"""From what a model answers a role to values: labels by their probabilities, words by their shape."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from models.language.labels import TRIGGER
from models.language.writing import SENTENCE
from models.reader import ReaderRejected
from models.reasoning.prompts import CRITERIA, Feelings
from models.remote.forms import Unreadable
from tracker.observations import Probabilities
from tracker.records import MAX_PROPOSITION_BYTES
from tracker.stances import Emotion, Expressed, Sentiment, Stance, TriggerKind

Value = TypeVar("Value")

UNANSWERED = (ReaderRejected, Unreadable)  # of a model that will not answer this, or not in its form

DIGITS = 6
YES_NO = ("yes", "no")
FEELINGS = {
    f"{emotion}, {sentiment}": Feelings(emotion, sentiment) for emotion in Emotion for sentiment in Sentiment
}
STANCES = {stance.value: stance for stance in Stance}
EXPRESSED = {label.value: label for label in Expressed}
KINDS = {word: TriggerKind(kind) for kind, word in TRIGGER.words.items()}

MOST_SENTENCES = 2  # of a rationale (appendix B.1.4)
_MARKS = "\"'“”«»「」*` "
_LABEL = re.compile(
    r"^\s*(?:target|topic|proposition|rationale|explanation|answer)\s*[:：]\s*", re.IGNORECASE
)


class Verdict(msgspec.Struct, frozen=True):
    """The Critic's verdict: whether each criterion of section 4.2 is met."""

    target: bool
    stance: bool
    evidence: bool

    @property
    def failed(self) -> tuple[str, ...]:
        """The criteria that are not met."""
        return tuple(name for name in CRITERIA if not getattr(self, name))

    @property
    def passed(self) -> bool:
        """Whether all are met."""
        return not self.failed


def likeliest(values: Sequence[Value], shares: Sequence[float]) -> tuple[Value, float]:
    """The value of the greatest share, the first of equal ones, and that share."""
    place = max(range(len(values)), key=shares.__getitem__)
    return values[place], round(shares[place], DIGITS)


def denied(shares: Sequence[float]) -> bool:
    """Whether the answer is no, of YES_NO. A model that cannot decide denies nothing."""
    yes, no = shares
    return no > yes


def verdict(shares: Sequence[Sequence[float]]) -> Verdict:
    """The verdict from an answer a criterion, in the order of CRITERIA."""
    return Verdict(**{name: not denied(row) for name, row in zip(CRITERIA, shares, strict=True)})


def probabilities(shares: Sequence[float]) -> Probabilities:
    """What a turn expresses, from a share for each of EXPRESSED."""
    rounded = [round(share, DIGITS) for share in shares]
    return Probabilities.of(dict(zip(EXPRESSED.values(), rounded, strict=True)))


def rationale(answer: str) -> str:
    """Its first two sentences on one line; "" where it has none."""
    plain = _LABEL.sub("", " ".join(answer.split()))
    return " ".join(found[0].strip() for found in islice(SENTENCE.finditer(plain), MOST_SENTENCES))


def proposition(answer: str) -> str | None:
    """The proposition in the answer's first line that says something; None where there is none to track."""
    plain = (" ".join(line.split()) for line in answer.splitlines())
    lines = (_LABEL.sub("", line.strip(_MARKS)).strip(_MARKS) for line in plain)
    found = next(filter(None, lines), None)
    return found if found and len(found.encode()) <= MAX_PROPOSITION_BYTES else None
