import asyncio
from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from stream import lag, topics
from stream.settings import Settings


@pytest.fixture
async def settings(broker: str, topic_prefix: str) -> Settings:
    made = Settings(broker=f"kafka://{broker}", topic_prefix=topic_prefix, partitions=2)
    await topics.ensure(made)
    return made


@pytest.fixture
async def watched(settings: Settings) -> AsyncIterator[lag.Lag]:
    await commit(settings, p0=0, p1=0)  # the first group of a broker waits for its topic of offsets
    async with lag.watching(settings) as found:
        yield found


async def produce(settings: Settings, partition: int, count: int) -> None:
    """In one batch: Tansu lists its end as if it held one record."""
    producer = AIOKafkaProducer(bootstrap_servers=settings.bootstrap_servers, linger_ms=50)
    await producer.start()
    try:
        name = topics.topic(settings, "turns")
        sent = [await producer.send(name, b"x", partition=partition) for _ in range(count)]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


async def commit(settings: Settings, **offsets: int) -> None:
    name = topics.topic(settings, "turns")
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.bootstrap_servers, group_id=lag.group(settings), enable_auto_commit=False
    )
    await consumer.start()
    try:
        partitions = {TopicPartition(name, int(key[1:])): offset for key, offset in offsets.items()}
        consumer.assign(list(partitions))
        await consumer.commit(partitions)
    finally:
        await consumer.stop()


def test_the_group_is_the_runs_own() -> None:
    assert lag.group(Settings()) == "volteface-live"
    assert lag.group(Settings(run="r", topic_prefix="vf")) == "vf-r"


async def test_an_empty_topic_has_no_lag(watched: lag.Lag) -> None:
    assert await watched.records() == 0


async def test_lag_reaches_0_with_the_last_record_and_not_before(
    settings: Settings, watched: lag.Lag
) -> None:
    await produce(settings, 0, 3)
    assert await watched.records() > 0
    await produce(settings, 0, 10)
    await produce(settings, 1, 1)
    for committed in ({"p0": 3, "p1": 0}, {"p0": 5, "p1": 1}, {"p0": 12, "p1": 1}):
        await commit(settings, **committed)
        assert await watched.records() > 0, committed
    await commit(settings, p0=13, p1=1)
    assert await watched.records() == 0
    await produce(settings, 1, 2)
    assert await watched.records() > 0


class Slow:
    """A consumer that lists an end and reads nothing before it."""

    def __init__(self, moves: bool) -> None:
        self.moves, self.at = moves, 0

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0}

    async def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 3)

    async def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.at = offset

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int
    ) -> dict[TopicPartition, list[object]]:
        self.at = 3 if self.moves else self.at
        return {}

    async def position(self, partition: TopicPartition) -> int:
        return self.at


class Uncommitted:
    async def list_consumer_group_offsets(self, group: str, partitions: object) -> dict[object, object]:
        return {}


@pytest.mark.parametrize(("moves", "behind"), [(False, 3), (True, 0)], ids=["a slow broker", "markers alone"])
async def test_what_was_not_read_is_not_taken_for_markers(moves: bool, behind: int) -> None:
    watched = lag.Lag(Settings(), Uncommitted(), Slow(moves))  # type: ignore[arg-type]
    assert await watched.records() == behind
