"""How far a run's agents are behind its turns topic."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from aiokafka import AIOKafkaConsumer, TopicPartition

from stream.admin import Admin
from stream.kafka import running
from stream.settings import Settings
from stream.topics import topic

FETCH_WAIT_MS = 50
CONFIRM_MS = 500
FEW = 100  # listed of a partition: they may be no records but the ends of transactions


class Lag:
    """Asks the broker for ends and commits; made by `watching`."""

    def __init__(self, settings: Settings, admin: Admin, consumer: AIOKafkaConsumer) -> None:
        self._admin, self._consumer = admin, consumer
        self._topic, self._group = topic(settings, "turns"), group(settings)

    async def records(self) -> int:
        """Records that stand in the turns topic and are not committed as finished. Raises KafkaError."""
        partitions = [
            TopicPartition(self._topic, number)
            for number in self._consumer.partitions_for_topic(self._topic) or ()
        ]
        ends = await self._consumer.end_offsets(partitions)
        starts = await self._consumer.beginning_offsets(partitions)
        committed = await self._admin.list_consumer_group_offsets(self._group, partitions=partitions)
        finished = {
            partition: max(_offset(committed.get(partition)), starts[partition]) for partition in partitions
        }
        behind: int = sum(max(0, ends[partition] - finished[partition]) for partition in partitions)
        if behind > FEW * len(partitions):
            return behind
        found = await self._found(finished)
        if found or await self._passed(ends):
            return max(found, behind) if found else 0
        return behind

    async def _found(self, finished: dict[TopicPartition, int]) -> int:
        """Records that can be read: Tansu lists a last batch as if it held one record."""
        for partition, offset in finished.items():
            self._consumer.seek(partition, offset)
        found = await self._consumer.getmany(*finished, timeout_ms=CONFIRM_MS)
        return sum(len(records) for records in found.values())

    async def _passed(self, ends: dict[TopicPartition, int]) -> bool:
        """Whether all was read over: Kafka lists the marker that ends a transaction, which is no record."""
        return all([await self._consumer.position(partition) >= end for partition, end in ends.items()])


def group(settings: Settings) -> str:
    """The consumer group of a run's agents; also their Faust app id."""
    return f"{settings.topic_prefix}-{settings.run}"


@asynccontextmanager
async def watching(settings: Settings) -> AsyncIterator[Lag]:
    """A Lag that may be asked while the block runs. Raises KafkaError, TimeoutError and OSError."""
    of_turns = partial(AIOKafkaConsumer, topic(settings, "turns"), fetch_max_wait_ms=FETCH_WAIT_MS)
    async with running(Admin, settings) as admin, running(of_turns, settings) as consumer:
        yield Lag(settings, admin, consumer)


def _offset(committed: object) -> int:
    return max(0, getattr(committed, "offset", 0))
