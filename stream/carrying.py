"""What an agent carries: records that arrived and are not finished, each partition's in their order.

A batch takes of every partition in turn. One of which much is left over, a busy room before a slow model,
brings no more until half of that is done, so that others go on.
"""

from collections.abc import Collection, Sequence
from itertools import zip_longest
from typing import Protocol

from stream.deliveries import Delivery
from stream.offsets import Partition

CARRIED_RECORDS = 1000  # of partitions that bring more: with as many no more are taken, whatever is down
PARTITION_RECORDS = 250  # left over of one partition
MOST_RECORDS = 4000  # in all: a partition that is held back had others on their way


class Flow(Protocol):
    """What can have partitions bring no more for a while."""

    def pause(self, partitions: Collection[Partition]) -> None:
        """They bring no more, but for what is on its way."""
        ...

    def resume(self, partitions: Collection[Partition]) -> None:
        """They bring more again."""
        ...


class Unsteered:
    """The flow of a source that cannot be held back."""

    def pause(self, partitions: Collection[Partition]) -> None:
        """They go on."""

    def resume(self, partitions: Collection[Partition]) -> None:
        """They went on all the time."""


class Carried:
    """Deliveries by partition."""

    def __init__(self) -> None:
        self._of: dict[Partition, list[Delivery]] = {}
        self._owned: set[Partition] = set()
        self._paused: set[Partition] = set()
        self._turn = 0

    def assigned(self, partitions: Collection[Partition]) -> None:
        """They may bring records from now on."""
        self._owned |= set(partitions)

    def add(self, arrived: Sequence[Delivery]) -> None:
        """Records that came, in order."""
        for delivery in arrived:
            self._owned.add(delivery.partition)
            self._of.setdefault(delivery.partition, []).append(delivery)

    def batch(self, most: int, without: Collection[Partition] = ()) -> list[Delivery]:
        """The next of every partition but those `without`, then the second of each, and so on."""
        of_each = [of_it for partition, of_it in self._of.items() if partition not in without]
        if not of_each:
            return []
        first = self._turn = (self._turn + 1) % len(of_each)
        picked: list[Delivery] = []
        for row in zip_longest(*of_each[first:], *of_each[:first]):
            if len(picked) >= most:
                break
            picked += [delivery for delivery in row if delivery is not None]
        return picked[:most]

    def drop(self, done: Collection[Delivery]) -> None:
        """They are finished."""
        gone = frozenset(done)
        for partition in {delivery.partition for delivery in gone} & self._of.keys():
            left = [delivery for delivery in self._of[partition] if delivery not in gone]
            if left:
                self._of[partition] = left
            else:
                del self._of[partition]

    def forget(self, partitions: Collection[Partition]) -> None:
        """They went to another agent."""
        for partition in partitions:
            self._of.pop(partition, None)
        self._owned -= set(partitions)
        self._paused -= set(partitions)

    def steer(self, flow: Flow, stuck: Collection[Partition] = ()) -> None:
        """Hold back those that are full or `stuck`, if others may go on; let the others bring more."""
        full = {partition for partition in self._owned if self._full(partition)} | (self._owned & {*stuck})
        if full >= self._owned:
            full = set()  # nobody is left whom they could hold up
        if ended := self._paused - full:
            flow.resume(ended)
        if full:  # also those that are paused: Faust takes all up again after a rebalance
            flow.pause(full)
        self._paused = full

    def _full(self, partition: Partition) -> bool:
        most = PARTITION_RECORDS // 2 if partition in self._paused else PARTITION_RECORDS
        return len(self._of.get(partition, ())) >= most

    @property
    def room(self) -> bool:
        """Whether more may be taken."""
        going = sum(len(of_it) for partition, of_it in self._of.items() if partition not in self._paused)
        return going < CARRIED_RECORDS and len(self) < MOST_RECORDS

    def has(self, without: Collection[Partition] = ()) -> bool:
        """Whether something is carried of other partitions than those."""
        return not self._of.keys() <= {*without}

    def holds(self, partition: Partition, offset: int | None) -> bool:
        """Whether this record of a partition is carried."""
        return any(delivery.offset == offset for delivery in self._of.get(partition, ()))

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))
