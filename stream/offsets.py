"""Which offsets of each partition are finished: acks leave in offset order, finished heads only."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
Partition = tuple[str, int]


class Place(NamedTuple):
    """How far a partition is, in offsets; None where nothing has come of it yet."""

    begun: int | None = None  # the last that arrived
    head: int | None = None  # the first in flight
    acked: int | None = None  # the one after the last that was acked


class Offsets(Generic[T]):
    """Offsets in flight by partition; `ack` is called for the finished head of each, in order."""

    def __init__(self, ack: Callable[[T], object]) -> None:
        self._ack = ack
        self._open: dict[Partition, OrderedDict[int, tuple[T, bool]]] = {}
        self._begun: dict[Partition, int] = {}
        self._acked: dict[Partition, int] = {}

    def begin(self, partition: Partition, offset: int, held: T) -> None:
        """An offset has arrived; it holds up the acks of those behind it."""
        self._open.setdefault(partition, OrderedDict())[offset] = (held, False)
        self._begun[partition] = offset

    def finish(self, partition: Partition, offset: int) -> None:
        """An offset is done; ack it and those behind it, as far as all before are done."""
        pending = self._open.get(partition)
        if pending is None or offset not in pending:
            return  # its partition went to another agent meanwhile
        pending[offset] = (pending[offset][0], True)
        while pending and next(iter(pending.values()))[1]:
            head, (held, _) = pending.popitem(last=False)
            self._ack(held)
            self._acked[partition] = head + 1

    def forget(self, partitions: set[Partition]) -> None:
        """Partitions went to another agent: ack nothing of them any more."""
        for partition in partitions:
            for known in (self._open, self._begun, self._acked):
                known.pop(partition, None)

    def holds(self, partition: Partition, offset: int, held: T) -> bool:
        """Whether this very one is in flight."""
        pending = self._open.get(partition)
        return pending is not None and offset in pending and pending[offset][0] is held

    def place(self, partition: Partition) -> Place:
        """How far a partition is."""
        head = next(iter(self._open.get(partition, ())), None)
        return Place(self._begun.get(partition), head, self._acked.get(partition))

    @property
    def open(self) -> int:
        """How many offsets are in flight."""
        return sum(len(pending) for pending in self._open.values())
