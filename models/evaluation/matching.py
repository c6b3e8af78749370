"""One-to-one matching of predictions with gold, whatever order either is in."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from models.evaluation.measures import Sums, sums

P = TypeVar("P")
G = TypeVar("G")


def matched(predicted: Sequence[P], gold: Sequence[G], same: Callable[[P, G], bool]) -> list[tuple[int, int]]:
    """A largest one-to-one matching, as (predicted, gold) places.

    Largest rather than greedy: `same` may be a judge's word, which is no equivalence, and a greedy choice
    would make the score depend on the order of the predictions.
    """
    edges = [[at for at, right in enumerate(gold) if same(left, right)] for left in predicted]
    taken: dict[int, int] = {}
    for place in range(len(predicted)):
        _augment(place, edges, taken, set())
    return sorted((left, right) for right, left in taken.items())


def _augment(left: int, edges: list[list[int]], taken: dict[int, int], seen: set[int]) -> bool:
    """Find a place for `left`, moving earlier ones where they have another (Kuhn's algorithm)."""
    for right in edges[left]:
        if right in seen:
            continue
        seen.add(right)
        if right not in taken or _augment(taken[right], edges, taken, seen):
            taken[right] = left
            return True
    return False


def matched_counts(predicted: Sequence[P], gold: Sequence[G], same: Callable[[P, G], bool]) -> Sums:
    """(TP, FP, FN) of a largest one-to-one matching."""
    hits = len(matched(predicted, gold, same))
    return sums(hits, len(predicted) - hits, len(gold) - hits)


def equal_counts(predicted: Iterable[Hashable], gold: Iterable[Hashable]) -> Sums:
    """(TP, FP, FN) where only equal things match; repeated ones count as often as they stand."""
    left, right = Counter(predicted), Counter(gold)
    hits = (left & right).total()
    return sums(hits, left.total() - hits, right.total() - hits)
