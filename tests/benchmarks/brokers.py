"""Topics of a broker as a benchmark needs them: filled beforehand, watched by their ends while agents run."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from deploy.kafka import kafka
from stream.embedded import EmbeddedBroker
from stream.embedded.broker import Broker

POLL_SECONDS = 0.02
IDLE_SECONDS = 2.0  # after the last record that was waited for, others may still come


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


class Ends:
    """How many records stand in topics, asked without reading them: reading would take a core away."""

    def __init__(self, consumer: AIOKafkaConsumer, topics: Sequence[str], partitions: int) -> None:
        self._consumer = consumer
        self._places = [TopicPartition(topic, number) for topic in topics for number in range(partitions)]

    async def counts(self) -> dict[str, int]:
        """Records by topic."""
        counts: dict[str, int] = {}
        for place, end in (await self._consumer.end_offsets(self._places)).items():
            counts[place.topic] = counts.get(place.topic, 0) + end
        return counts

    async def reached(self, topic: str, count: int, patience: float) -> float:
        """The monotonic time of the last record of all topics, once `topic` holds `count`. Raises Stalled."""
        counts, moved = await self.counts(), time.monotonic()
        while counts[topic] < count or time.monotonic() < moved + IDLE_SECONDS:
            await asyncio.sleep(POLL_SECONDS)
            now = await self.counts()
            if now != counts:
                counts, moved = now, time.monotonic()
            elif time.monotonic() > moved + patience:
                raise Stalled(f"{topic} stands at {counts[topic]} of {count}; all: {counts}")
        return moved


@asynccontextmanager
async def watching(bootstrap: str, topics: Sequence[str], partitions: int) -> AsyncIterator[Ends]:
    """The ends of topics, which exist."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    try:
        yield Ends(consumer, topics, partitions)
    finally:
        await consumer.stop()
