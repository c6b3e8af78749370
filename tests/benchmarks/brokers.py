"""Topics of a broker as a benchmark needs them: filled beforehand, watched while agents run."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from deploy.kafka import kafka
from stream.embedded import EmbeddedBroker
from stream.embedded.broker import Broker

POLL_MS = 50
IDLE_SECONDS = 1.0  # after the last record that was waited for, others may still come


class Stalled(RuntimeError):
    """What was waited for did not come."""


@contextmanager
def started() -> Iterator[dict[str, Broker]]:
    """The brokers to be had here, by name, both running."""
    with EmbeddedBroker() as tansu:
        if reason := kafka.available():
            print(f"not measured on Apache Kafka: {reason}")
            yield {"tansu": tansu}
            return
        with kafka.KafkaBroker() as node:
            yield {"kafka": node, "tansu": tansu}


async def make(bootstrap: str, names: Sequence[str], partitions: int) -> None:
    """Make topics."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, partitions, 1) for name in names])
    finally:
        await admin.close()


async def produce(bootstrap: str, topic: str, records: Iterable[tuple[bytes, bytes]]) -> None:
    """Put (key, value) records into a topic and wait until all stand there."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)
    await producer.start()
    try:
        sent = [await producer.send(topic, value, key=key) for key, value in records]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


class Arrivals:
    """How many records of topics have arrived; their bytes are not looked at.

    They are read, though a core pays for it: Tansu says a batch's first offset where the end is asked for.
    """

    def __init__(self, consumer: AIOKafkaConsumer, topics: Sequence[str]) -> None:
        self._consumer = consumer
        self.counts = dict.fromkeys(topics, 0)

    async def reached(self, topic: str, count: int, patience: float) -> float:
        """The monotonic time of the last record of all topics, once `topic` holds `count`. Raises Stalled."""
        moved = time.monotonic()
        while self.counts[topic] < count or time.monotonic() < moved + IDLE_SECONDS:
            if await self._collect():
                moved = time.monotonic()
            elif time.monotonic() > moved + patience:
                raise Stalled(f"{topic} stands at {self.counts[topic]} of {count}; all: {self.counts}")
        return moved

    async def _collect(self) -> int:
        batches = await self._consumer.getmany(timeout_ms=POLL_MS)
        for place, batch in batches.items():
            self.counts[place.topic] += len(batch)
        return sum(map(len, batches.values()))


@asynccontextmanager
async def watching(bootstrap: str, topics: Sequence[str], partitions: int) -> AsyncIterator[Arrivals]:
    """The arrivals in topics, which exist."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, number) for topic in topics for number in range(partitions)])
        yield Arrivals(consumer, topics)
    finally:
        await consumer.stop()
