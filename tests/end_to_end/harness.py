"""Runs agents against real servers, produces to them, and collects all that leaves them."""

import asyncio
import contextlib
import datetime as dt
import gc
import os
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition

from models.language.rule import RuleEngine
from models.local import LocalReader
from models.reader import Reader
from stream import app, lag, topics
from stream.kafka import client_options
from stream.settings import Settings
from stream.store.port import Store
from stream.store.redis import RedisStore
from tracker import keys, records
from tracker.records import CreateTurn, DeclareTarget, Record

ROOT = Path(__file__).parents[2]
DEADLINE = 30.0
PROPOSITION = "whether tea beats coffee"
NAMES = ("journal", "states", "stances", "flips", "dead-letters")
# aiokafka may leave a connection open that is made while its client is closed.
LEFT_OPEN = r"ignore:.*(AIOKafka\w+|StreamWriter)\.__del__:pytest.PytestUnraisableExceptionWarning"
# The command line without those of its commands that need more than the core.
AGENT = "from stream import roles, settings; import asyncio; asyncio.run(roles.agent(settings.load()))"


@contextlib.contextmanager
def sweeping() -> Iterator[None]:
    """Collects in the end what aiokafka left open, whose warning would else be another test's."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def settings_of(
    broker: str, redis: str, prefix: str, *, idempotence: bool, run: str = "live", partitions: int = 2
) -> Settings:
    """A small run: two partitions, and short times for its group and its batches."""
    return Settings(
        broker=broker, redis=redis, topic_prefix=prefix, run=run, reader="rule", partitions=partitions,
        rebalance_seconds=3.0, batch_seconds=1.0, broker_idempotence=idempotence,
    )  # fmt: skip


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def target(room: str, proposition: str = PROPOSITION, **rest: Any) -> DeclareTarget:
    ident = rest.pop("id", f"declare {proposition}")
    return DeclareTarget(
        conversation=room, sent_at=rest.pop("sent_at", now()), id=ident, proposition=proposition, **rest
    )


def turn(room: str, name: str, text: str = "+1", **rest: Any) -> CreateTurn:
    given: dict[str, Any] = {"holder": "ann", "sent_at": now()} | rest
    return CreateTurn(conversation=room, turn=name, text=text, **given)


def key(room: str) -> bytes:
    return keys.conversation_key("default", room)


@contextlib.asynccontextmanager
async def running(
    settings: Settings, *, reader: Reader | None = None, store: Store | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    """An agent in this process, ready; told to stop at the end, where its failure is raised."""
    stop, ready = asyncio.Event(), asyncio.Event()
    store = store or RedisStore(settings.redis, settings.run, prefix=settings.topic_prefix)
    reader = reader or LocalReader(RuleEngine())
    task = asyncio.create_task(app.run(settings, store, reader, stop=stop, ready=ready.set))
    started = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait([task, started], timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
        assert ready.is_set() or task.done(), "the agent was not ready in time"
        yield task
    finally:
        started.cancel()
        stop.set()
        async with asyncio.timeout(DEADLINE):
            await task


class Producer:
    """Produces to a run's turns topic, as a platform would; waits for delivery."""

    def __init__(self, settings: Settings, producer: AIOKafkaProducer) -> None:
        self._producer, self._topic = producer, topics.topic(settings, "turns")

    async def raw(
        self, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()
    ) -> tuple[int, int]:
        """Any bytes; returns partition and offset."""
        sent = await self._producer.send_and_wait(self._topic, value, key=key, headers=list(headers))
        return sent.partition, sent.offset

    async def soon(self, key: bytes | None, value: bytes | None) -> None:
        """Any bytes, without waiting for delivery."""
        await self._producer.send(self._topic, value, key=key)

    async def records(self, given: Sequence[Record]) -> None:
        """Records, under their own keys and in order."""
        sent = [
            await self._producer.send(
                self._topic,
                records.encode(record),
                key=keys.conversation_key(record.tenant, record.conversation),
            )
            for record in given
        ]
        await asyncio.gather(*sent)


@contextlib.asynccontextmanager
async def producing(settings: Settings) -> AsyncIterator[Producer]:
    """A producer of the run's turns topic, which is made where it is missing."""
    await topics.ensure(settings)
    producer = AIOKafkaProducer(**client_options(settings), max_request_size=2_000_000)
    await producer.start()
    try:
        yield Producer(settings, producer)
    finally:
        await producer.stop()


DeadLetter = tuple[dict[str, bytes], ConsumerRecord]  # its headers, and the message


class Collected:
    """All that has left for the run's topics, as it arrives."""

    def __init__(self, settings: Settings, consumer: AIOKafkaConsumer) -> None:
        self._settings, self._consumer = settings, consumer
        self.records: dict[str, list[ConsumerRecord]] = defaultdict(list)
        self.values: dict[str, list[dict[str, Any]]] = defaultdict(list)  # decoded
        self.dead_letters: dict[tuple[int, int], DeadLetter] = {}  # by the partition and offset of the record

    async def until(
        self, condition: Callable[["Collected"], object], what: str = "", seconds: float = DEADLINE
    ) -> None:
        """Collect until the condition holds. Fails past the deadline."""
        deadline = time.monotonic() + seconds
        while not condition(self):
            counts = {name: len(found) for name, found in self.records.items()}
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}; collected {counts}"
            await self.collect()

    async def collect(self, milliseconds: int = 50) -> None:
        """Take what has arrived."""
        found = await self._consumer.getmany(timeout_ms=milliseconds)
        for partition, batch in found.items():
            name = partition.topic.rpartition(".")[2]
            self.records[name] += batch
            for record in batch:
                self._take(name, record)

    async def rest(self, milliseconds: int = 500) -> None:
        """Take what is still to come, until nothing came for so long; `collect` takes one fetch."""
        count = -1
        while count < (count := sum(map(len, self.records.values()))):
            await self.collect(milliseconds)

    def _take(self, name: str, record: ConsumerRecord) -> None:
        if name != "dead-letters":
            if record.value is not None:  # a tombstone: records alone show it
                self.values[name].append(msgspec.json.decode(record.value))
            return
        headers = dict(record.headers)
        if "volteface.status" in headers and record.value is None:  # what an operator did with a letter
            return
        partition, offset = headers["__connect.errors.partition"], headers["__connect.errors.offset"]
        self.dead_letters[int(partition), int(offset)] = headers, record

    def journal(self, room: str | None = None) -> list[dict[str, Any]]:
        """The journal entries, of one conversation or of all."""
        return [entry for entry in self.values["journal"] if room in (None, entry["conversation"])]

    def applied(self, room: str, record: str) -> dict[str, Any] | None:
        """The journal entry of a record, by its id."""
        return next((entry for entry in self.journal(room) if entry["entry"]["id"] == record), None)

    def arrivals(self) -> set[tuple[str, int]]:
        """Which records of which conversation were applied, each once however often it was sent."""
        return {(entry["conversation"], entry["entry"]["arrival"]) for entry in self.journal()}

    def events(self, name: str = "stances") -> dict[str, dict[str, Any]]:
        """Events by id. Fails where one id was sent with two payloads."""
        found: dict[str, dict[str, Any]] = {}
        for event in self.values[name]:
            assert found.setdefault(event["id"], event) == event
        return found


@contextlib.asynccontextmanager
async def collecting(settings: Settings) -> AsyncIterator[Collected]:
    """Everything that the run's topics hold and will hold."""
    await topics.ensure(settings)
    consumer = AIOKafkaConsumer(
        **client_options(settings), auto_offset_reset="earliest", fetch_max_wait_ms=20
    )
    await consumer.start()
    try:
        consumer.assign(
            [
                TopicPartition(topics.topic(settings, name), number)
                for name in NAMES
                for number in range(settings.partitions)
            ]
        )
        yield Collected(settings, consumer)
    finally:
        await consumer.stop()


async def drained(settings: Settings, seconds: float = 60.0) -> None:
    """Wait until all that stands in the turns topic is committed as finished."""
    async with asyncio.timeout(seconds), lag.watching(settings) as watched:
        while await watched.records():  # noqa: ASYNC110 - the broker must be asked
            await asyncio.sleep(0.05)


def gapless(events: Mapping[str, dict[str, Any]]) -> bool:
    """Whether each conversation's events are numbered 1, 2, 3 and so on."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for event in events.values():
        numbers[event["data"]["conversation"]].append(int(event["sequence"]))
    return all(sorted(found) == list(range(1, len(found) + 1)) for found in numbers.values())


def environment(settings: Settings) -> dict[str, str]:
    """The settings as an agent's process reads them."""
    given = msgspec.structs.asdict(settings)
    default = msgspec.structs.asdict(Settings())
    changed = {name: value for name, value in given.items() if value != default[name]}
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("VOLTEFACE_")},
        **{f"VOLTEFACE_{name.upper()}": str(value) for name, value in changed.items()},
    }


@contextlib.contextmanager
def agent_process(settings: Settings, log: Path, script: str = AGENT) -> Iterator[subprocess.Popen[bytes]]:
    """An agent as a process of its own; killed at the end, unless it has ended before."""
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [sys.executable, "-c", script], cwd=ROOT, env=environment(settings), stdout=stream, stderr=stream
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(timeout=10)


async def ended(process: subprocess.Popen[bytes], seconds: float) -> int:
    """The status of a process that ends in time."""
    async with asyncio.timeout(seconds):
        while (status := process.poll()) is None:  # noqa: ASYNC110 - a process must be asked
            await asyncio.sleep(0.02)
    return status
