import math

import pytest

from models.evaluation.measures import sums
from models.evaluation.spans import overlap, proportional, proportional_counts, proportional_f1, tokens


def test_tokens_are_words_and_single_characters_of_chinese() -> None:
    assert tokens("The café's light, 很好 ok") == ["the", "café", "s", "light", "很", "好", "ok"]


@pytest.mark.parametrize(
    ("left", "right", "length"),
    [("abcd", "xbcy", 2), ("abc", "abc", 3), ("abc", "xyz", 0), ("", "a", 0), ("aXbc", "abXc", 1)],
)
def test_overlap_is_the_longest_common_run(left: str, right: str, length: int) -> None:
    assert overlap(left, right) == overlap(right, left) == length


def test_the_score_of_a_pair() -> None:
    assert proportional("an ethereal atmosphere", "creates an ethereal atmosphere") == pytest.approx(6 / 7)
    assert proportional("", "a") == 0.0


def test_proportional_by_hand() -> None:
    counted = proportional_counts(["a b c d", "x"], ["c d e"])
    # precision: (2/4 + 0) / 2, recall: (2/3) / 1
    assert counted.tolist() == pytest.approx([0.5, 2, 2 / 3, 1])
    assert proportional_f1(counted) == pytest.approx(2 * 0.25 * (2 / 3) / (0.25 + 2 / 3))


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [([], [], math.nan), (["a"], [], 0.0), ([], ["a"], 0.0), (["a"], ["b"], 0.0), (["a b"], ["a b"], 1.0)],
)
def test_proportional_at_the_borders(predicted: list[str], gold: list[str], expected: float) -> None:
    assert proportional_f1(proportional_counts(predicted, gold)) == pytest.approx(expected, nan_ok=True)


def test_many_at_once() -> None:
    both = [sums(0, 0, 0, 0), sums(1, 1, 1, 1)]
    assert proportional_f1(sums(*both[0], *both[1]).reshape(2, 4)) == pytest.approx(
        [math.nan, 1.0], nan_ok=True
    )
