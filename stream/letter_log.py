"""A run's dead-letters topic, read in a stream as far as it reached when it was opened.

A pass keeps nothing of the letters it yields. Of those that somebody judged it keeps id and verdict, some 500
bytes each, since a verdict may stand behind its letter as far as the topic reaches.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from stream.admin import Admin
from stream.dead_letters import TOPIC
from stream.kafka import REQUEST_TIMEOUT_SECONDS, running
from stream.letters import Letter, Verdict, read
from stream.settings import Settings
from stream.topics import topic

FETCH_WAIT_MS = 50
POLL_MS = 200
READ_SECONDS = 60.0  # without anything new

Ends = dict[TopicPartition, int]


class NoLetters(Exception):
    """The run has no dead-letters topic."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which letters: those named, or where none is, all open ones (of one reason)."""

    ids: frozenset[str] = frozenset()
    reason: str | None = None

    def takes(self, letter: Letter) -> bool:
        """Whether an open letter is one of them."""
        return letter.id in self.ids if self.ids else self.reason in (None, letter.header("volteface.reason"))


class Log:
    """Reads what stood in the topic when it was opened; made by `opened`."""

    def __init__(self, consumer: AIOKafkaConsumer, ends: Ends, sure: bool) -> None:
        self._consumer, self.ends, self._sure = consumer, ends, sure

    async def messages(self) -> AsyncGenerator[Letter | Verdict, None]:
        """Letters and verdicts, those of a partition in order.

        The first whole pass finds the ends: Tansu lists a last batch as if it held one record.
        """
        sure = self._sure
        async with aclosing(self._fetched()) as fetched:
            async for message in fetched:
                place = TopicPartition(message.topic, message.partition)
                found = None if sure and message.offset >= self.ends[place] else read(message)
                if found is not None:
                    yield found
        if not sure:
            self.ends = {place: max(end, await self._position(place)) for place, end in self.ends.items()}
            self._sure = True

    async def letters(self) -> AsyncGenerator[Letter, None]:
        """All letters; one that was sent more than once comes as often."""
        async with aclosing(self.messages()) as messages:
            async for one in messages:
                if isinstance(one, Letter):
                    yield one

    async def verdicts(self) -> dict[str, Verdict]:
        """The newest by letter."""
        found: dict[str, Verdict] = {}
        async with aclosing(self.messages()) as messages:
            async for one in messages:
                if isinstance(one, Verdict):
                    found[one.letter] = max(one, found.get(one.letter, one), key=lambda each: each.at)
        return found

    async def chosen(self, asked: Asked) -> AsyncGenerator[Letter, None]:
        """Each letter that is asked for, once."""
        passed = set[str]() if asked.ids else set(await self.verdicts())
        left = len(asked.ids)
        async with aclosing(self.letters()) as letters:
            async for letter in letters:
                if letter.id in passed or not asked.takes(letter):
                    continue
                passed.add(letter.id)
                yield letter
                left -= 1
                if not left:
                    return

    async def _fetched(self) -> AsyncGenerator[Any, None]:
        async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
            await self._consumer.seek_to_beginning(*self.ends)
        left = await self._unread()
        while left:
            async with asyncio.timeout(READ_SECONDS):
                batches: dict[Any, list[Any]] = {}
                while left and not batches:
                    batches = await self._consumer.getmany(*left, timeout_ms=POLL_MS)
                    left = await self._unread()
            for batch in batches.values():
                for message in batch:
                    yield message

    async def _unread(self) -> list[TopicPartition]:
        return [place for place, end in self.ends.items() if await self._position(place) < end]

    async def _position(self, place: TopicPartition) -> int:
        async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
            return int(await self._consumer.position(place))


@asynccontextmanager
async def opened(settings: Settings, ends: Ends | None = None) -> AsyncIterator[Log]:
    """The run's letters, up to the ends that another log had, if any.

    Raises NoLetters, KafkaError, TimeoutError and OSError.
    """
    options = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": FETCH_WAIT_MS}
    places = [TopicPartition(topic(settings, TOPIC), number) for number in await _partitions(settings)]
    async with running(AIOKafkaConsumer, settings, **options) as consumer:
        consumer.assign(places)
        async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
            found = await consumer.end_offsets(places)
        yield Log(consumer, ends or found, sure=ends is not None)


async def _partitions(settings: Settings) -> list[int]:
    name = topic(settings, TOPIC)
    async with running(Admin, settings) as client, asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
        # Asked first, since a broker may make a topic that it is asked about by name.
        if name not in await client.list_topics():
            raise NoLetters(f"run {settings.run} has no topic {name}; is --run the name of a run?")
        [described] = await client.describe_topics([name])
    return [partition["partition"] for partition in described["partitions"]]
