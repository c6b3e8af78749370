"""PanoSent's span matching (section 6.1, appendix F.1.1): exact, and proportional to what overlaps."""

import re
from collections.abc import Sequence

import numpy as np

from models.evaluation.measures import Sums, divided, sums

# A word of a script that has spaces, or one character of a script that has none.
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
ENOUGH = 0.5  # section 6.1: a rationale above it counts as correct in pairs and sextuples


def tokens(text: str) -> list[str]:
    """Words, and single characters of Chinese and Japanese."""
    return _TOKEN.findall(text.lower())


def overlap(left: Sequence[str], right: Sequence[str]) -> int:
    """How many tokens the longest run has that both texts share: spans overlap in one region."""
    best, lengths = 0, [0] * (len(right) + 1)
    for one in left:
        before = 0
        for at, other in enumerate(right, 1):
            kept = lengths[at]
            lengths[at] = before + 1 if one == other else 0
            best, before = max(best, lengths[at]), kept
    return best


def proportional(predicted: str, gold: str) -> float:
    """The score of one rationale against another: 2 * overlap / (both lengths), in tokens."""
    left, right = tokens(predicted), tokens(gold)
    return 2 * overlap(left, right) / (len(left) + len(right)) if left and right else 0.0


def proportional_counts(predicted: Sequence[str], gold: Sequence[str]) -> Sums:
    """(sum of precisions, predicted, sum of recalls, gold): each term against the one it overlaps most."""
    said, right = [tokens(text) for text in predicted], [tokens(text) for text in gold]
    return sums(_covered(said, right), len(said), _covered(right, said), len(right))


def proportional_f1(totals: Sums) -> Sums:
    """Equations 14 to 16, of `proportional_counts`."""
    precision = divided(totals[..., 0], totals[..., 1])
    recall = divided(totals[..., 2], totals[..., 3])
    found = divided(2 * precision * recall, precision + recall)
    # With one side empty there is nothing right; with both there is nothing to judge.
    empty = (totals[..., 0] == 0) & (totals[..., 1] + totals[..., 3] > 0)
    return np.where(empty, 0.0, found)


def _covered(spans: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> float:
    return sum(
        max((overlap(span, other) / len(span) for other in others), default=0.0) for span in spans if span
    )
