"""Following topics from their beginning, without a group: for screens and tests."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition

from stream.kafka import running
from stream.settings import Settings
from stream.topics import topic

POLL_MS = 100
FETCH_WAIT_MS = 20  # Tansu wakes no fetch that waits; Kafka does, and answers at once


class Tail:
    """Topics being followed; made by `following`."""

    def __init__(self, consumer: AIOKafkaConsumer, names: dict[str, str]) -> None:
        self._consumer, self._names = consumer, names

    async def messages(self) -> AsyncIterator[tuple[str, bytes]]:
        """(short topic name, value) of everything as it arrives; tombstones are left out."""
        while True:
            batches = await self._consumer.getmany(timeout_ms=POLL_MS)
            for partition, batch in batches.items():
                for message in batch:
                    if message.value is not None:
                        yield self._names[partition.topic], message.value
            await asyncio.sleep(0)


@asynccontextmanager
async def following(settings: Settings, names: Sequence[str]) -> AsyncIterator[Tail]:
    """Follow the run's topics of these short names, which exist.

    Raises KafkaError, TimeoutError and OSError where the broker does not answer.
    """
    topics = {topic(settings, name): name for name in names}
    options = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": FETCH_WAIT_MS}
    async with running(AIOKafkaConsumer, settings, **options) as consumer:
        partitions = [
            TopicPartition(name, number) for name in topics for number in range(settings.partitions)
        ]
        consumer.assign(partitions)
        yield Tail(consumer, topics)
