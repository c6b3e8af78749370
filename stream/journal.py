"""Stretches of the run's journal by offset, without a group."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition

from stream.kafka import running
from stream.settings import Settings
from stream.topics import topic
from tracker.ledger import JournalEntry

log = structlog.get_logger(__name__)

FETCH_WAIT_MS = 50
POLL_MS = 200
READ_SECONDS = 60.0  # without anything new, of one stretch

_entry = msgspec.json.Decoder(JournalEntry)


class Journal:
    """Reads a run's journal; made by `reading`."""

    def __init__(self, settings: Settings, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer
        self._journal = topic(settings, "journal")

    async def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset that the journal's partition still holds, and the one after its last.

        Tansu lists the end of a last batch as if it held one record.
        """
        place = TopicPartition(self._journal, partition)
        self._consumer.assign([place])
        starts = await self._consumer.beginning_offsets([place])
        ends = await self._consumer.end_offsets([place])
        return starts[place], ends[place]

    async def entries(self, partition: int, first: int, end: int) -> dict[int, JournalEntry]:
        """By offset, those from `first` to before `end`, and what was fetched with them from beyond.

        What is none of ours is told and left out.
        """
        messages = [one async for one in self._stretch(TopicPartition(self._journal, partition), first, end)]
        return dict(_decoded(messages))

    async def _stretch(self, place: TopicPartition, first: int, end: int) -> AsyncIterator[Any]:
        if first >= end:
            return
        self._consumer.assign([place])
        self._consumer.seek(place, first)
        while await self._consumer.position(place) < end:
            async with asyncio.timeout(READ_SECONDS):
                batches: dict[Any, list[Any]] = {}
                while not batches and await self._consumer.position(place) < end:
                    batches = await self._consumer.getmany(place, timeout_ms=POLL_MS)
            for message in batches.get(place, ()):
                yield message


def _decoded(messages: Sequence[Any]) -> Iterator[tuple[int, JournalEntry]]:
    for message in messages:
        try:
            yield message.offset, _entry.decode(message.value or b"")
        except msgspec.MsgspecError:
            log.warning("journal.unreadable", partition=message.partition, offset=message.offset)


@asynccontextmanager
async def reading(settings: Settings) -> AsyncIterator[Journal]:
    """A Journal while the block runs. Raises KafkaError, TimeoutError and OSError."""
    options = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": FETCH_WAIT_MS}
    async with running(AIOKafkaConsumer, settings, **options) as consumer:
        yield Journal(settings, consumer)
