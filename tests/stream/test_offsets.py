from hypothesis import given
from hypothesis import strategies as st

from stream.offsets import Offsets, Place

P, Q = ("t", 0), ("t", 1)


def begun(*offsets: int) -> tuple[Offsets[int], list[int]]:
    acked: list[int] = []
    found: Offsets[int] = Offsets(acked.append)
    for offset in offsets:
        found.begin(P, offset, offset)
    return found, acked


@given(order=st.permutations(range(5, 13)))
def test_only_finished_heads_are_acked_and_in_order(order: list[int]) -> None:
    offsets, acked = begun(*range(5, 13))
    for done, offset in enumerate(order, 1):
        offsets.finish(P, offset)
        finished = set(order[:done])
        head = next((each for each in range(5, 13) if each not in finished), 13)
        assert acked == list(range(5, head))
        assert offsets.open == 8 - len(acked)


def test_partitions_do_not_hold_each_other_up() -> None:
    offsets, acked = begun(1, 2)
    offsets.begin(Q, 1, 100)
    offsets.finish(Q, 1)
    assert acked == [100]


def test_what_is_forgotten_is_never_acked() -> None:
    offsets, acked = begun(1, 2, 3)
    offsets.finish(P, 2)
    offsets.forget({P, Q})
    offsets.finish(P, 1)
    assert (acked, offsets.open) == ([], 0)


def test_a_partition_that_comes_back_begins_anew() -> None:
    offsets, acked = begun(1, 2, 3)
    offsets.finish(P, 1)
    offsets.forget({P})
    offsets.begin(P, 2, 22)
    offsets.finish(P, 3)  # of the time before
    assert acked == [1]
    offsets.finish(P, 2)
    assert acked == [1, 22]


def test_finishing_twice_acks_once() -> None:
    offsets, acked = begun(1, 2)
    offsets.finish(P, 1)
    offsets.finish(P, 1)
    assert acked == [1]


def test_only_the_very_one_in_flight_is_held() -> None:
    held, other = object(), object()
    offsets: Offsets[object] = Offsets(lambda _: None)
    assert not offsets.holds(P, 1, held)
    offsets.begin(P, 1, held)
    assert offsets.holds(P, 1, held)
    assert not offsets.holds(P, 1, other)
    assert not offsets.holds(P, 2, held)
    offsets.forget({P})
    assert not offsets.holds(P, 1, held)


def test_a_place_is_how_far_a_partition_is() -> None:
    offsets, _ = begun()
    assert offsets.place(P) == Place(None, None, None)
    for offset in (4, 6, 9):  # a marker stands between each two
        offsets.begin(P, offset, offset)
    assert offsets.place(P) == Place(begun=9, head=4, acked=None)
    offsets.finish(P, 6)
    assert offsets.place(P) == Place(begun=9, head=4, acked=None)
    offsets.finish(P, 4)
    assert offsets.place(P) == Place(begun=9, head=9, acked=7)
    offsets.finish(P, 9)
    assert offsets.place(P) == Place(begun=9, head=None, acked=10)
    offsets.forget({P})
    assert offsets.place(P) == offsets.place(Q) == Place()
