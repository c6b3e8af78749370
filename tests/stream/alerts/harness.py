"""Runs the alerts' role against real servers, gives it events, and collects what it sends."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from stream import topics
from stream.alerts import role
from stream.kafka import client_options
from stream.settings import Settings
from tracker import events, keys
from tracker.alert_rules import Rule
from tracker.events import Event

DEADLINE = 40.0


@contextlib.asynccontextmanager
async def running(
    settings: Settings, rules: Sequence[Rule], *, from_now: bool = False
) -> AsyncIterator[asyncio.Task[None]]:
    """The role in this process, told to stop at the end, where its failure is raised; partitions came."""
    stop, ready = asyncio.Event(), asyncio.Event()
    ran = role.run(settings, rules, role.store(settings), stop=stop, ready=ready.set, from_now=from_now)
    task, came = asyncio.create_task(ran), asyncio.create_task(ready.wait())
    try:
        await asyncio.wait([task, came], timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
        assert ready.is_set() or task.done(), "no partitions came in time"
        yield task
    finally:
        came.cancel()
        stop.set()
        async with asyncio.timeout(DEADLINE):
            await task


async def produce(settings: Settings, found: Sequence[Event]) -> None:
    """Events to the run's topic, in order, as the agent sends them."""
    await topics.ensure(settings)
    producer = AIOKafkaProducer(**client_options(settings))
    await producer.start()
    try:
        name = topics.topic(settings, "stances")
        sent = [
            await producer.send(
                name,
                events.encode(event),
                key=keys.conversation_key(event.data.tenant, event.data.conversation),
            )
            for event in found
        ]
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


class Sent:
    """The alerts that left, by id: each may come twice, but never with another payload."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer
        self.alerts: dict[str, dict[str, Any]] = {}
        self.keys: set[bytes | None] = set()
        self.count = 0

    async def until(self, condition: Callable[["Sent"], object], what: str) -> None:
        """Collect until the condition holds. Fails past the deadline."""
        deadline = time.monotonic() + DEADLINE
        while not condition(self):
            assert time.monotonic() < deadline, f"not in time: {what}; {len(self.alerts)} alerts came"
            await self.collect()

    async def rest(self, milliseconds: int = 400) -> None:
        """Take what is still to come, until nothing came for so long."""
        before = -1
        while before < (before := self.count):
            await self.collect(milliseconds)

    async def collect(self, milliseconds: int = 50) -> None:
        """Take what has arrived."""
        found = await self._consumer.getmany(timeout_ms=milliseconds)
        for message in (each for batch in found.values() for each in batch):
            alert = msgspec.json.decode(message.value)
            assert self.alerts.setdefault(alert["id"], alert) == alert
            self.keys.add(message.key)
            self.count += 1


@contextlib.asynccontextmanager
async def collecting(settings: Settings) -> AsyncIterator[Sent]:
    """All that the run's alerts topic holds and will hold."""
    await topics.ensure(settings)
    consumer = AIOKafkaConsumer(
        **client_options(settings), auto_offset_reset="earliest", fetch_max_wait_ms=20
    )
    await consumer.start()
    try:
        name = topics.topic(settings, "alerts")
        consumer.assign([TopicPartition(name, number) for number in range(settings.partitions)])
        yield Sent(consumer)
    finally:
        await consumer.stop()
