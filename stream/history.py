"""What the broker holds of a run: topics from beginning to end, records where they stand, and its group."""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import GroupCoordinatorNotAvailableError, GroupLoadInProgressError, for_code

from stream.admin import Admin
from stream.kafka import running
from stream.lag import group
from stream.settings import Settings
from stream.topics import Name, topic

NEEDED: tuple[Name, ...] = ("journal", "states", "turns")
AT_ONCE = 16  # partitions, of each of which up to a mebibyte is held
SKIP = 2000  # records that are read over sooner than a fetch is made anew
FETCH_WAIT_MS = 50
POLL_MS = 200
END_MS = 3000  # without a record past the end that is listed; a busy broker takes its time
CALL_SECONDS = 30.0
READ_SECONDS = 60.0  # without anything new
RETRY_SECONDS = 0.1


class MissingTopics(Exception):
    """The run has not all of its topics: there is no such run, or it never began."""


class History:
    """Reads without a group, whatever the topics hold, in bounded memory; made by `reading`."""

    def __init__(
        self,
        settings: Settings,
        admin: Admin,
        consumer: AIOKafkaConsumer,
        counts: dict[str, int],
    ) -> None:
        self._settings, self._admin, self._consumer = settings, admin, consumer
        self._counts = counts

    @property
    def turns(self) -> str:
        """The full name of the turns topic."""
        return topic(self._settings, "turns")

    def partitions(self, name: Name) -> list[TopicPartition]:
        """The partitions of a topic."""
        full = topic(self._settings, name)
        return [TopicPartition(full, number) for number in range(self._counts[full])]

    async def messages(self, name: Name) -> AsyncIterator[list[Any]]:
        """All messages from the beginning to the end as it is now, in the order of each partition."""
        places = self.partitions(name)
        for start in range(0, len(places), AT_ONCE):
            async for batch in self._whole(places[start : start + AT_ONCE]):
                yield batch

    async def bounds(self, name: Name, partition: int) -> tuple[int, int]:
        """The first offset that a partition still holds, and the one after its last.

        Tansu lists the end of a last batch as if it held one record.
        """
        [place] = places = [TopicPartition(topic(self._settings, name), partition)]
        starts, ends = await self._bounds(places)
        return starts[place], ends[place]

    async def stretch(self, name: Name, partition: int, first: int, end: int) -> AsyncIterator[list[Any]]:
        """The messages from `first` to before `end`, and what is fetched with them from beyond."""
        place = TopicPartition(topic(self._settings, name), partition)
        async for batch in self._between({place: first}, {place: end}):
            yield batch

    async def _whole(self, places: Sequence[TopicPartition]) -> AsyncIterator[list[Any]]:
        async for batch in self._between(*await self._bounds(places)):
            yield batch

    async def _between(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> AsyncIterator[list[Any]]:
        self._consumer.assign([*starts])
        for place, start in starts.items():
            self._consumer.seek(place, start)
        while left := await self._unread(ends):
            async with asyncio.timeout(READ_SECONDS):
                batches: dict[Any, list[Any]] = {}
                # Where the last records are gone, positions move without any.
                while left and not batches:
                    batches = await self._consumer.getmany(*left, timeout_ms=POLL_MS)
                    left = await self._unread(ends)
            for batch in batches.values():
                yield batch

    async def _unread(self, ends: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        async with asyncio.timeout(CALL_SECONDS):
            return [place for place, end in ends.items() if await self._consumer.position(place) < end]

    async def records(self, partition: int, offsets: Sequence[int]) -> AsyncIterator[list[Any]]:
        """The messages of the turns topic at these offsets, given in order, as far as it still holds them."""
        place = TopicPartition(self.turns, partition)
        starts, ends = await self._bounds([place])
        at, position = bisect_left(offsets, starts[place]), -SKIP
        self._consumer.assign([place])
        while at < len(offsets):
            sought = offsets[at] - position >= SKIP
            if sought:
                self._consumer.seek(place, offsets[at])
            batch = await self._next(place, ends[place])
            if not batch or (sought and batch[0].offset < offsets[at]):
                return  # past the end of a topic that was made anew, the consumer goes back to its beginning
            position = batch[-1].offset + 1
            after = bisect_left(offsets, position)
            wanted = set(offsets[at:after])
            yield [message for message in batch if message.offset in wanted]
            at = after

    async def _next(self, place: TopicPartition, end: int) -> list[Any]:
        """The next messages; none where nothing comes past the end that is listed.

        Tansu lists a last batch's end as if it held one record.
        """
        async with asyncio.timeout(READ_SECONDS):
            while True:
                last = await self._consumer.position(place) >= end
                found = await self._consumer.getmany(place, timeout_ms=END_MS if last else POLL_MS)
                if found or last:
                    batch: list[Any] = found.get(place, [])
                    return batch

    async def finished(self) -> dict[int, int]:
        """The offset by partition of turns from which on records come again when an agent starts."""
        places = self.partitions("turns")
        starts, _ = await self._bounds(places)
        name = group(self._settings)
        told = await of_group(lambda: self._admin.list_consumer_group_offsets(name, partitions=places))
        committed = {place: getattr(told.get(place), "offset", -1) for place in places}
        return {place.partition: max(committed[place], starts[place]) for place in places}

    async def members(self) -> int:
        """How many agents the broker counts in the run's group."""
        name = group(self._settings)
        [answer] = await of_group(lambda: self._admin.describe_consumer_groups([name]))
        [(error, _, _, _, _, members, *_)] = answer.groups
        if error:
            raise for_code(error)(f"group {name}")
        return len(members)

    async def _bounds(self, places: Sequence[TopicPartition]) -> tuple[dict[Any, int], dict[Any, int]]:
        async with asyncio.timeout(CALL_SECONDS):
            return await self._consumer.beginning_offsets(places), await self._consumer.end_offsets(places)


@asynccontextmanager
async def reading(settings: Settings) -> AsyncIterator[History]:
    """A History while the block runs. Raises MissingTopics, KafkaError, TimeoutError and OSError."""
    options = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": FETCH_WAIT_MS}
    async with (
        running(Admin, settings) as admin,
        running(AIOKafkaConsumer, settings, **options) as consumer,
    ):
        yield History(settings, admin, consumer, await _counts(settings, admin))


async def of_group(ask: Callable[[], Awaitable[Any]]) -> Any:
    """What is known of a group: the first group of a broker waits for its topic of offsets."""
    async with asyncio.timeout(CALL_SECONDS):
        while True:
            try:
                return await ask()
            except (GroupCoordinatorNotAvailableError, GroupLoadInProgressError):
                await asyncio.sleep(RETRY_SECONDS)


async def _counts(settings: Settings, admin: Admin) -> dict[str, int]:
    """How many partitions each of the needed topics has."""
    names = [topic(settings, name) for name in NEEDED]
    async with asyncio.timeout(CALL_SECONDS):
        # Asked for by name, a topic that is missing would be described by one broker, and made by another.
        missing = sorted(set(names) - set(await admin.list_topics()))
        if missing:
            remedy = "name the run with --run, or start `volteface agent`, which makes them"
            raise MissingTopics(f"run {settings.run} has no topic {', '.join(missing)}: {remedy}")
        described = await admin.describe_topics(names)
    return dict(_counted(described))


def _counted(described: Sequence[Any]) -> Iterator[tuple[str, int]]:
    for one in described:
        yield one["topic"], len(one["partitions"])
