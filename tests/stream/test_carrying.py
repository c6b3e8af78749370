import datetime as dt
from collections.abc import Collection
from types import SimpleNamespace

from stream import carrying
from stream.carrying import CARRIED_RECORDS, PARTITION_RECORDS, Carried
from stream.deliveries import Delivery
from stream.offsets import Partition

NOW = dt.datetime(2026, 11, 30, tzinfo=dt.UTC)
P0, P1, P2 = ("turns", 0), ("turns", 1), ("turns", 2)


def deliveries(partition: Partition, count: int, start: int = 0) -> list[Delivery]:
    topic, number = partition
    return [
        Delivery(SimpleNamespace(message=SimpleNamespace(topic=topic, partition=number, offset=offset)), NOW)
        for offset in range(start, start + count)
    ]


class Steered:
    """A flow that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, set[Partition]]] = []

    def pause(self, partitions: Collection[Partition]) -> None:
        self.told.append(("pause", set(partitions)))

    def resume(self, partitions: Collection[Partition]) -> None:
        self.told.append(("resume", set(partitions)))


def places(batch: Collection[Delivery]) -> list[tuple[int, int]]:
    return [(delivery.partition[1], delivery.offset) for delivery in batch]


def test_a_batch_takes_of_each_in_turn_and_keeps_each_ones_order() -> None:
    carried = Carried()
    carried.add([*deliveries(P0, 4), *deliveries(P1, 2)])
    batch = carried.batch(5)
    assert sorted(places(batch)[:4]) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert places(batch)[4:] == [(0, 2)]
    assert [offset for number, offset in places(batch) if number == 0] == [0, 1, 2]


def test_who_comes_first_changes_from_batch_to_batch() -> None:
    """Else one record that never ends would be all that is tried, when only one is."""
    carried = Carried()
    carried.add([*deliveries(P0, 2), *deliveries(P1, 2)])
    assert {places(carried.batch(1))[0] for _ in range(2)} == {(0, 0), (1, 0)}


def test_what_is_finished_is_dropped_and_the_rest_stays_in_order() -> None:
    carried = Carried()
    carried.add(deliveries(P0, 4))
    done = carried.batch(4)[1:3]
    carried.drop(done)
    assert places(carried.batch(9)) == [(0, 0), (0, 3)]
    carried.drop(carried.batch(9))
    assert (len(carried), carried.has(), carried.batch(9)) == (0, False, [])


def test_what_came_again_is_not_dropped_with_what_came_before() -> None:
    """A partition that went and came back brings the same offsets anew."""
    carried = Carried()
    carried.add(deliveries(P0, 2))
    old = carried.batch(2)
    carried.forget({P0})
    carried.add(deliveries(P0, 2))
    carried.drop(old)
    assert places(carried.batch(9)) == [(0, 0), (0, 1)]


def test_a_batch_without_some_partitions() -> None:
    carried = Carried()
    carried.add([*deliveries(P0, 1), *deliveries(P1, 1)])
    assert places(carried.batch(9, {P0})) == [(1, 0)]
    assert (carried.has({P0}), carried.has({P0, P1})) == (True, False)
    assert (carried.holds(P0, 0), carried.holds(P0, 1), carried.holds(P2, 0)) == (True, False, False)


def test_a_full_partition_is_held_back_until_half_of_it_is_done() -> None:
    carried, flow = Carried(), Steered()
    carried.assigned({P0, P1})
    carried.add(deliveries(P0, PARTITION_RECORDS))
    carried.steer(flow)
    carried.drop(carried.batch(PARTITION_RECORDS // 2))
    carried.steer(flow)
    carried.drop(carried.batch(1))
    carried.steer(flow)
    carried.steer(flow)
    assert flow.told == [("pause", {P0}), ("pause", {P0}), ("resume", {P0})]


def test_where_all_are_full_none_is_held_back() -> None:
    """Faust sleeps for a second where every partition is paused, and nobody is there to be starved."""
    carried, flow = Carried(), Steered()
    carried.assigned({P0, P1})
    carried.add(deliveries(P0, PARTITION_RECORDS))
    carried.steer(flow)
    carried.add(deliveries(P1, PARTITION_RECORDS))
    carried.steer(flow)
    assert flow.told == [("pause", {P0}), ("resume", {P0})]
    carried.forget({P1})
    carried.steer(flow)
    assert len(flow.told) == 2


def test_a_stuck_partition_brings_no_more() -> None:
    carried, flow = Carried(), Steered()
    carried.assigned({P0, P1})
    carried.steer(flow, {P0, P2})
    carried.steer(flow)
    assert flow.told == [("pause", {P0}), ("resume", {P0})]


def test_more_is_taken_while_those_that_are_not_held_back_have_room() -> None:
    carried, flow = Carried(), Steered()
    carried.assigned({P0, P1})
    carried.add(deliveries(P0, CARRIED_RECORDS))
    rooms = [carried.room]
    carried.steer(flow)
    rooms.append(carried.room)
    carried.add(deliveries(P1, CARRIED_RECORDS - 1))
    rooms.append(carried.room)
    carried.add(deliveries(P1, 1, CARRIED_RECORDS))
    rooms.append(carried.room)
    assert rooms == [False, True, True, False]


def test_what_is_held_back_is_bounded_too() -> None:
    carried, flow = Carried(), Steered()
    carried.assigned({P0, P1})
    carried.add(deliveries(P0, carrying.MOST_RECORDS))
    carried.steer(flow)
    assert not carried.room


def test_a_partition_that_went_and_came_back_is_held_back_no_more() -> None:
    carried, flow = Carried(), Steered()
    carried.assigned({P0, P1})
    carried.add(deliveries(P0, PARTITION_RECORDS))
    carried.steer(flow)
    carried.forget({P0})
    carried.assigned({P0})
    carried.steer(flow)
    assert flow.told == [("pause", {P0})]
