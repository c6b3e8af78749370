import itertools

from hypothesis import given
from hypothesis import strategies as st

from models.evaluation.matching import equal_counts, matched, matched_counts

EDGES = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


def test_a_greedy_choice_is_undone() -> None:
    likes = {("a", 1), ("a", 2), ("b", 1)}
    assert matched("ab", [1, 2], lambda left, right: (left, right) in likes) == [(0, 1), (1, 0)]


@given(EDGES)
def test_it_is_a_largest_matching(edges: set[tuple[int, int]]) -> None:
    pairs = matched(range(4), range(4), lambda left, right: (left, right) in edges)
    assert set(pairs) <= edges
    assert len({left for left, _ in pairs}) == len({right for _, right in pairs}) == len(pairs)
    best = max(
        sum((left, right) in edges for left, right in enumerate(order))
        for order in itertools.permutations(range(4))
    )
    assert len(pairs) == best


def test_counts() -> None:
    assert matched_counts("abc", "bd", str.__eq__).tolist() == [1, 2, 1]
    assert matched_counts("", "", str.__eq__).tolist() == [0, 0, 0]


def test_repeated_things_count_as_often_as_they_stand() -> None:
    assert equal_counts("aab", "abb").tolist() == [2, 1, 1]


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_equal_counts_are_those_of_matching(left: list[str], right: list[str]) -> None:
    assert equal_counts(left, right).tolist() == matched_counts(left, right, str.__eq__).tolist()
