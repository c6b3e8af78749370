"""The feeder: from the topics into the views, each event once and in its topic's order.

What was read and where to go on are stored in one transaction, so a feeder that dies anywhere goes on exactly
behind what is stored. The broker's own offsets are not asked: the consumer group only shares the partitions
out. Two feeders that hold a partition for a moment store the same events under the same ids, once.

A database or a broker that is away is waited for. A message that is none of ours, or that the database
refuses by itself, is counted, told in the log and passed: no other waits for it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from stream.database.engine import DatabaseUnavailable
from stream.kafka import STOP_TIMEOUT_SECONDS, in_words, running
from stream.settings import Settings
from stream.topics import topic
from stream.views.port import Views
from stream.views.reading import FED
from stream.views.storing import Counts, Storing

log = structlog.get_logger(__name__)

BATCH = 500  # messages of a transaction
POLL_MS = 200
FETCH_WAIT_MS = 50  # Tansu wakes no fetch that waits
CALL_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0

Found = Mapping[TopicPartition, Sequence[Any]]


class _Placed(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka ships no types
    """The partitions that are read from where the views go on; none, after the group has shared out anew."""

    def __init__(self) -> None:
        self.partitions: set[TopicPartition] = set()

    async def on_partitions_revoked(self, revoked: Any) -> None:
        self.partitions.clear()

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self.partitions.clear()


class Feeder:
    """Feeds a run's views; any number of feeders of one database share the partitions."""

    def __init__(
        self,
        settings: Settings,
        views: Views,
        *,
        told: Callable[[], None] = lambda: None,
        fresh: bool = False,
    ) -> None:
        """`told` is called when there are new events. `fresh`: the topics are younger than the views, as
        those of the embedded broker always are; then what is stored of offsets means others.
        """
        self._settings, self._views, self._told, self._fresh = settings, views, told, fresh
        self._storing = Storing(settings.run, views)
        self._names = {topic(settings, name): name for name in FED}
        self._placed = _Placed()
        self._stored: dict[TopicPartition, int] = {}  # by this feeder

    @property
    def counts(self) -> Counts:
        """What it has read since it was made."""
        return self._storing.counts

    async def run(self, stop: asyncio.Event) -> None:
        """Feed until told to stop. The run's topics and the database's tables exist."""
        pause = FIRST_PAUSE_SECONDS
        while not stop.is_set():
            before = self.counts.messages
            try:
                await self._feed(stop)
            except (KafkaError, TimeoutError, OSError) as error:
                log.warning("views.broker_away", error=in_words(error))
            except DatabaseUnavailable as error:
                log.warning("views.database_away", error=str(error))
            pause = (
                FIRST_PAUSE_SECONDS
                if self.counts.messages > before
                else min(2 * pause, LONGEST_PAUSE_SECONDS)
            )
            await _waited(stop, pause)

    async def _feed(self, stop: asyncio.Event) -> None:
        options = {
            "group_id": group(self._settings),
            "session_timeout_ms": int(self._settings.rebalance_seconds * 1000),
            "heartbeat_interval_ms": int(min(3.0, self._settings.rebalance_seconds / 3) * 1000),
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "fetch_max_wait_ms": FETCH_WAIT_MS,
        }
        self._placed = _Placed()
        async with AsyncExitStack() as last, running(AIOKafkaConsumer, self._settings, **options) as consumer:
            last.push_async_callback(_let_go, consumer)
            consumer.subscribe([*self._names], listener=self._placed)
            log.info("views.feeding", run=self._settings.run)
            while not stop.is_set():
                await self._place(consumer)
                found = await self._next(consumer)
                if found:
                    await self._keep(found, stop)

    async def _place(self, consumer: AIOKafkaConsumer) -> None:
        """Go to where the views go on, in partitions that the group has given since."""
        new = [*(consumer.assignment() - self._placed.partitions)]
        if not new:
            return
        async with asyncio.timeout(CALL_SECONDS):
            starts, ends = await consumer.beginning_offsets(new), await consumer.end_offsets(new)
        for name in {place.topic for place in new}:
            stored = await self._views.offsets(name)
            for place in (each for each in new if each.topic == name):
                wanted = self._stored.get(place, 0) if self._fresh else stored.get(place.partition, 0)
                # Past the end: the topic was made anew, and is read from its beginning.
                offset = wanted if starts[place] <= wanted <= ends[place] else starts[place]
                if 0 < wanted < starts[place]:
                    gap = {"partition": place.partition, "offset": wanted, "held_from": starts[place]}
                    log.error("views.messages_gone", topic=name, **gap)  # the topic kept them no longer
                if place in consumer.assignment():
                    consumer.seek(place, offset)
                    self._placed.partitions.add(place)

    async def _next(self, consumer: AIOKafkaConsumer) -> Found:
        """The next messages; none where the group shares out anew meanwhile: they come again."""
        places = [*self._placed.partitions]
        if not places:
            await asyncio.sleep(POLL_MS / 1000)
            return {}
        found: Found = await consumer.getmany(*places, timeout_ms=POLL_MS, max_records=BATCH)
        return {place: messages for place, messages in found.items() if place in self._placed.partitions}

    async def _keep(self, found: Found, stop: asyncio.Event) -> None:
        """Store messages and where they end, however long the database is away."""
        entries = [
            entry
            for place, messages in found.items()
            for entry in self._storing.entries(self._names[place.topic], messages)
        ]
        ends = {place: messages[-1].offset + 1 for place, messages in found.items()}
        offsets = {(place.topic, place.partition): end for place, end in ends.items()}
        pause = FIRST_PAUSE_SECONDS
        while not stop.is_set():
            try:
                moved = await self._storing.put(entries, offsets)
            except DatabaseUnavailable as error:
                log.warning("views.database_away", error=str(error))
                await _waited(stop, pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                continue
            self._stored |= ends
            if moved:
                self._told()
            return


def group(settings: Settings) -> str:
    """The consumer group of a run's feeders."""
    return f"{settings.topic_prefix}-{settings.run}-views"


async def _let_go(consumer: AIOKafkaConsumer) -> None:
    """Close what is left open by a stop that took too long, as one does while the group shares out anew.

    aiokafka has no such stop.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
            parts = consumer._fetcher.close(), consumer._client.close()
            await asyncio.gather(*parts, return_exceptions=True)


async def _waited(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
