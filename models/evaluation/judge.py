"""The judge of open fields: whether a predicted target, rationale or term means what the gold one does.

A port with three answers: an LLM (StanceFlip appendix D.3; `models.evaluation.llm_judge`), containment, which
is also the LLM's fallback, and embeddings, for use offline.
"""

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from models.evaluation.normalisation import normalised


class Field(enum.StrEnum):
    """What is compared."""

    TARGET = "target"
    RATIONALE = "rationale"
    TERM = "term"  # an implicit element of PanoSent


class Question(msgspec.Struct, frozen=True):
    """One comparison; `context` is the whole dialogue, since terms mean what they mean in it."""

    field: Field
    predicted: str
    gold: str
    context: str


class Judge(Protocol):
    """Answers comparisons. `name` stands in reports: figures of two judges are not comparable."""

    @property
    def name(self) -> str:
        """What judged."""
        ...

    def same(self, questions: Sequence[Question]) -> list[bool]:
        """One answer a question, in order."""
        ...


def contained(predicted: str, gold: str) -> bool:
    """D.3's lenient string containment: either within the other; nothing contains an empty text."""
    left, right = normalised(predicted), normalised(gold)
    return bool(left and right) and (left in right or right in left)


class ContainmentJudge:
    """Either text within the other (StanceFlip appendix D.3, the fallback)."""

    name = "containment"

    def same(self, questions: Sequence[Question]) -> list[bool]:
        """One answer a question, in order."""
        return [contained(question.predicted, question.gold) for question in questions]


class EmbeddingJudge:
    """Cosine of two embeddings at least `threshold`; which threshold is right depends on the encoder."""

    def __init__(
        self, encode: Callable[[Sequence[str]], ArrayLike], threshold: float, encoder: str = "embeddings"
    ) -> None:
        self._encode, self._threshold = encode, threshold
        self.name = f"{encoder}, cosine >= {threshold:g}"

    def same(self, questions: Sequence[Question]) -> list[bool]:
        """One answer a question, in order; every text is encoded once."""
        texts = list(dict.fromkeys(text for asked in questions for text in (asked.predicted, asked.gold)))
        if not texts:
            return []
        vectors = np.asarray(self._encode(texts), dtype=np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = dict(zip(texts, vectors / np.where(lengths == 0, 1.0, lengths), strict=True))
        return [
            bool(unit[asked.predicted] @ unit[asked.gold] >= self._threshold - 1e-9) for asked in questions
        ]


class Verdicts:
    """A judge's answers to questions known beforehand, so that it may answer them in batches.

    Texts that are equal once normalised are the same without asking.
    """

    def __init__(self, judge: Judge, questions: Iterable[Question]) -> None:
        asked = [question for question in dict.fromkeys(questions) if not _equal(question)]
        self._answers = dict(zip(asked, judge.same(asked), strict=True))

    def same(self, question: Question) -> bool:
        """The answer. Raises KeyError for a question that was not among those given."""
        return _equal(question) or self._answers[question]


def _equal(question: Question) -> bool:
    return normalised(question.predicted) == normalised(question.gold)
