"""The role: reads a run's events as a group of its own until told to stop, and waits for what is away."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from stream import topics
from stream.alerts import probes
from stream.alerts.finder import Contended, Finder
from stream.alerts.places import Places
from stream.alerts.port import AlertStore
from stream.alerts.redis import RedisAlertStore
from stream.alerts.vitals import Vitals
from stream.kafka import in_words, running
from stream.lag import group as agents
from stream.sender import Sender, SenderUnavailable
from stream.settings import Settings
from stream.store.port import StoreReplaced, StoreUnavailable
from tracker.alert_rules import Rule

log = structlog.get_logger(__name__)

POLL_MS = 200
FETCH_WAIT_MS = 50
BATCH_EVENTS = 500
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0
STOP_SECONDS = 3.0

Outage = (StoreUnavailable, SenderUnavailable, Contended, KafkaError, TimeoutError, OSError)


def group(settings: Settings) -> str:
    """The consumer group of a run's alerts; no run's agents can have it, since no run has a dot."""
    return f"{agents(settings)}.alerts"


def store(settings: Settings) -> RedisAlertStore:
    """Where the run's alert states live."""
    return RedisAlertStore(
        settings.redis, settings.run, prefix=settings.topic_prefix, cafile=settings.redis_cafile
    )


async def run(
    settings: Settings,
    rules: Sequence[Rule],
    store: AlertStore,
    *,
    stop: asyncio.Event,
    ready: Callable[[], None] = lambda: None,
    from_now: bool = False,
    vitals: Vitals | None = None,
) -> None:
    """Find alerts until `stop`; probes are answered where settings say.

    `ready` is called once partitions came and their places are known.
    Raises TopicsUnavailable, KafkaError, TimeoutError and OSError where it cannot start.
    """
    vitals = vitals or Vitals()
    sender = Sender(settings)
    try:
        async with probes.serving(settings.probes, vitals):
            await topics.ensure(settings)
            async with _reading(settings, rules, store, sender, vitals, from_now=from_now) as reading:
                await _until(stop, reading, ready)
    finally:
        for part in (sender, store):
            with suppress(Exception):  # each is closed, whatever becomes of the other
                async with asyncio.timeout(STOP_SECONDS):
                    await part.close()
        log.info("alerts.stopped", run=settings.run, read=vitals.read)


@asynccontextmanager
async def _reading(
    settings: Settings,
    rules: Sequence[Rule],
    store: AlertStore,
    sender: Sender,
    vitals: Vitals,
    *,
    from_now: bool,
) -> AsyncIterator["Reading"]:
    async with running(AIOKafkaConsumer, settings, **_options(settings)) as consumer:
        places = Places(consumer, store, rules, vitals, from_now=from_now)
        consumer.subscribe([topics.topic(settings, "stances")], listener=places)
        log.info("alerts.started", run=settings.run, rules=len(rules))
        yield Reading(consumer, places, Finder(store, sender, rules, vitals), store, vitals)


def _options(settings: Settings) -> dict[str, Any]:
    session = int(settings.rebalance_seconds * 1000)
    return {
        "group_id": group(settings),
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": FETCH_WAIT_MS,
        "session_timeout_ms": session,
        "heartbeat_interval_ms": min(3000, session // 3),
        "rebalance_timeout_ms": session,
    }


class Reading:
    """Takes batches of events, one after the other, however often a part is down meanwhile."""

    def __init__(
        self, consumer: AIOKafkaConsumer, places: Places, finder: Finder, store: AlertStore, vitals: Vitals
    ) -> None:
        self._consumer, self._places, self._finder = consumer, places, finder
        self._store, self._vitals = store, vitals
        self._pause = FIRST_PAUSE_SECONDS

    async def run(self, ready: Callable[[], None]) -> None:
        """For ever."""
        told = False
        while True:
            try:
                await self._batch()
            except StoreReplaced as replaced:
                self._store.accept()
                await self._wait(replaced)
            except Outage as away:
                await self._wait(away)
            else:
                self._pause, self._vitals.paused = FIRST_PAUSE_SECONDS, None
            if self._vitals.joined and not told:
                told = True
                ready()

    async def _batch(self) -> None:
        await self._places.seek()
        found = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=BATCH_EVENTS)
        # A partition may have come while this waited.
        found = {place: batch for place, batch in found.items() if self._places.sought(place)}
        if found:
            await self._finder.take([message.value for batch in found.values() for message in batch])
            await self._places.done(found)

    async def _wait(self, outage: Exception) -> None:
        """A part does not answer: pause, longer each time, and read again what was not kept."""
        part = type(outage).__name__
        said = in_words(outage) if isinstance(outage, KafkaError) else str(outage)
        log.warning("alerts.paused", part=part, error=said, seconds=round(self._pause, 1))
        self._vitals.pause(part)
        self._places.again()
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)


async def _until(stop: asyncio.Event, reading: Reading, ready: Callable[[], None]) -> None:
    """Read until told to stop; what is cancelled in its middle is read again."""
    told, work = asyncio.ensure_future(stop.wait()), asyncio.ensure_future(reading.run(ready))
    try:
        await asyncio.wait({told, work}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
    finally:
        for task in (told, work):
            task.cancel()
        await asyncio.gather(told, work, return_exceptions=True)
