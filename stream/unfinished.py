"""Journal entries whose records come again when an agent starts, and the version before them.

What the agents' group has not committed is taken from the log once more; an agent puts such entries back by
itself, and sends their events, if the store does not have them yet.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import islice
from typing import NamedTuple

import structlog

from stream import entries
from stream.entries import Place, place_of
from stream.history import History
from stream.restore import MOST_LOST
from stream.scratch import Scratch
from tracker.ledger import JournalEntry
from tracker.records import Record

log = structlog.get_logger(__name__)

Alone = Callable[[bytes], AbstractContextManager[None]]  # what fails in it fails of this room

MOST = MOST_LOST // 2  # of a partition: what is sent twice counts twice, and an agent puts back no more
ROOMS = 500  # at once


class _Again(NamedTuple):
    """An entry whose record comes again, if it stands there still."""

    arrival: int
    place: Place


async def find(read: History, scratch: Scratch, alone: Alone) -> None:
    """Keep the version before what comes again, of all conversations of which something does.

    Of a partition of which too much does, as where its group's commits have expired, no record is looked up.
    """
    floors = await read.finished()
    counts: Counter[int] = Counter()
    for room in _rooms(scratch):
        with alone(room):
            counts.update(one.place.partition for one in _candidates(scratch, room, read.turns, floors))
    _tell(counts)
    few = {partition: floor for partition, floor in floors.items() if counts[partition] <= MOST}
    for room in _rooms(scratch):
        with alone(room):
            scratch.want(one.place for one in _candidates(scratch, room, read.turns, few))
    await look_up(read, scratch)
    for room in _rooms(scratch):
        with alone(room):
            _cut(scratch, room, _candidates(scratch, room, read.turns, few), read.turns)


def _tell(counts: Counter[int]) -> None:
    for partition, count in sorted(counts.items()):
        if count > MOST:
            log.warning("rebuild.too_much_unfinished", partition=partition, at_least=count)


async def look_up(read: History, scratch: Scratch) -> None:
    """Have the records found that are wanted, as far as the turns topic still holds them."""
    for place in read.partitions("turns"):
        for offsets in scratch.wanted(place.partition):
            async for messages in read.records(place.partition, offsets):
                scratch.found((Place(one.partition, one.offset), (one.key, one.value)) for one in messages)


def record_of(scratch: Scratch, entry: JournalEntry | None, turns: str) -> Record | None:
    """The record of an entry, if it was found where the entry says."""
    place = place_of(entry.source, turns) if entry is not None else None
    if entry is None or place is None:
        return None
    return entries.record_of(entry, *scratch.record(place))


def _rooms(scratch: Scratch) -> Iterator[bytes]:
    for page in scratch.rooms(ROOMS):
        yield from page


def _candidates(scratch: Scratch, room: bytes, turns: str, floors: Mapping[int, int]) -> Iterator[_Again]:
    """Entries that are not committed as finished, the newest first, as long as they follow each other."""
    arrival, offset = scratch.newest(room) + 1, None
    for found, source in islice(scratch.sources(room), MOST + 1):
        place = place_of(source, turns)
        floor = floors.get(place.partition) if place is not None else None
        if place is None or floor is None or place.offset < floor or found != arrival - 1:
            return
        if offset is not None and place.offset >= offset:  # of an earlier life of the topic
            return
        arrival, offset = found, place.offset
        yield _Again(found, place)


def _cut(scratch: Scratch, room: bytes, found: Iterable[_Again], turns: str) -> None:
    """Before the first of the entries whose records, with all later ones, stand in the log."""
    first = None
    for one in found:
        if record_of(scratch, scratch.entry(room, one.arrival), turns) is None:
            break
        first = one.arrival
    if first is not None:
        scratch.cut(room, first - 1)
