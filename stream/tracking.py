"""Tracking a file in process: the processor on an in-memory store, without broker or Redis."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import islice

from models.reader import ReaderUnavailable
from stream.chain import Item
from stream.outbox import STANCES, TURNS
from stream.platforms import Line
from stream.processor import Processed, Processor
from stream.store.port import Message, Store
from tracker.parsing import parse_keyed
from tracker.records import Record, Refused

BATCH_LINES = 64
PATIENCE = 6  # outages in a row before a file is given up

Report = Callable[[int, Refused], None]  # line number and refusal


class GaveUp(Exception):
    """The reader stayed away for too long."""


async def track(
    lines: Iterable[Line], processor: Processor, store: Store, refused: Report
) -> AsyncIterator[tuple[int, list[bytes]]]:
    """How many lines each batch took, and its events, as JSON, in order within each conversation.

    Raises GaveUp where the reader does not come back, and what the lines raise, all before them taken.
    """
    for batch in _batches(lines):
        records: list[tuple[int, Record]] = []
        for line in batch:
            if isinstance(line.result, Refused):
                refused(line.number, line.result)
            else:
                records.append((line.number, line.result))
        events = [event async for event in _events(records, processor, store, refused)]
        yield len(batch), events


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Batches of lines; a file that breaks off gives what stood before the break, then its error."""
    numbered = iter(lines)
    while True:
        batch: list[Line] = []
        try:
            batch.extend(islice(numbered, BATCH_LINES))
        except OSError:
            if batch:
                yield batch
            raise
        if not batch:
            return
        yield batch


async def _events(
    records: list[tuple[int, Record]], processor: Processor, store: Store, refused: Report
) -> AsyncIterator[bytes]:
    items = [Item(index, record) for index, (_, record) in enumerate(records)]
    outages = 0
    while items:
        result = await processor.process(items)
        for refusal in result.refusals:
            refused(records[refusal.index][0], refusal.refused)
        for message in _sent(result, STANCES):
            if message.value is not None:
                yield message.value
        await store.delivered({key: tuple(outbox) for key, outbox in result.outboxes.items()})
        unfinished = set(result.unfinished)
        came_on = len(unfinished) < len(items)
        line = max((records[item.index][0] for item in items if item.index not in unfinished), default=0)
        left = [item for item in items if item.index in unfinished]
        items = [*_returned(result, records, line), *left]
        outages = await _pause(result.outage, 0 if came_on else outages)


def _returned(result: Processed, records: list[tuple[int, Record]], line: int) -> Iterator[Item]:
    """Targets that were found on the way: no log brings them back here, so they go before what is left."""
    for message in _sent(result, TURNS):
        record = parse_keyed(message.key, message.value)
        yield Item(len(records), record)
        records.append((line, record))


def _sent(result: Processed, topic: str) -> Iterator[Message]:
    for outbox in result.outboxes.values():
        for arrival in sorted(outbox):
            yield from (message for message in outbox[arrival] if message.topic == topic)


async def _pause(outage: ReaderUnavailable | None, outages: int) -> int:
    """Outages in a row, this one counted and waited out."""
    if outage is None:
        return 0
    if outages + 1 == PATIENCE:
        raise GaveUp(f"the reader did not answer {PATIENCE} times: {outage}") from outage
    await asyncio.sleep(outage.retry_after)
    return outages + 1
