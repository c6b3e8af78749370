"""A gateway for tests: a real server on a free port, over views and accounts that the test holds."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
from aiokafka import AIOKafkaConsumer, TopicPartition
from httpx_sse import EventSource, ServerSentEvent

from stream import topics
from stream.accounts import secrets
from stream.accounts.memory import MemoryAccounts
from stream.accounts.port import Accounts, Key, Scope
from stream.gateway.keyring import Keyring
from stream.gateway.names import Names
from stream.gateway.parts import Limits, Parts
from stream.gateway.server import serve
from stream.gateway.turns_log import Sends, TurnsLog
from stream.kafka import client_options
from stream.settings import Settings
from stream.store.port import Message
from stream.tenants import Tenants
from stream.views.memory import MemoryViews
from stream.views.port import Batch, Told, Views
from stream.views.reading import entry_of
from tracker import events, parsing
from tracker.events import EventType, Position, TargetRef
from tracker.observations import Trigger
from tracker.records import Record
from tracker.stances import Stance, TriggerKind

START = dt.datetime(2026, 11, 29, 20, 0, tzinfo=dt.UTC)
DEADLINE = 20.0
FIRST_KEY = "the-first-key"


class Kept:
    """A sender that keeps what it is given; while `away`, it takes nothing."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.calls = 0
        self.away: Exception | None = None
        self.go = asyncio.Event()
        self.go.set()

    async def send(self, messages: Sequence[Message]) -> None:
        self.calls += 1
        await self.go.wait()
        if self.away:
            raise self.away
        self.records += [parsing.parse_keyed(message.key, message.value) for message in messages]


def parts_of(
    views: Views | None = None,
    accounts: Accounts | None = None,
    sender: Sends | None = None,
    *,
    limits: Limits | None = None,
    tenants: Tenants | None = None,
    seconds: float = 10.0,
    remembered: float = 5.0,
) -> Parts:
    """The parts of a gateway whose first key is FIRST_KEY."""
    return Parts(
        views=views or MemoryViews(),
        log=TurnsLog(sender or Kept(), seconds=seconds),
        keyring=Keyring(accounts or MemoryAccounts(), FIRST_KEY, remembered=remembered),
        names=Names(tenants or Tenants()),
        limits=limits,
    )


@contextlib.asynccontextmanager
async def running(parts: Parts, port: int = 0) -> AsyncIterator[str]:
    """A served gateway; its address."""
    stop, bound = asyncio.Event(), asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(parts, "127.0.0.1", port, stop=stop, on_listening=bound.set_result))
    try:
        await asyncio.wait({task, bound}, timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
        assert bound.done(), task.result()
        yield f"http://127.0.0.1:{bound.result()}"
    finally:
        stop.set()
        async with asyncio.timeout(DEADLINE):
            await task


@contextlib.asynccontextmanager
async def client(url: str, key: str | None = FIRST_KEY) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a key."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=DEADLINE, verify=False) as made:
        yield made


@contextlib.asynccontextmanager
async def served(parts: Parts, key: str | None = FIRST_KEY) -> AsyncIterator[httpx.AsyncClient]:
    """Both."""
    async with running(parts) as url, client(url, key) as made:
        yield made


async def key_of(accounts: Accounts, tenant: str, *scopes: Scope, principal: str = "ann") -> str:
    """A new key; without scopes, with all of them."""
    made = secrets.made()
    given = frozenset(scopes or Scope)
    key = Key(id=made.id, tenant=tenant, principal=principal, scopes=given, digest=made.digest, made_at=START)
    await accounts.add(key)
    return made.text


def told(sequence: int, kind: EventType = EventType.FLIPPED, **rest: Any) -> Told:
    """An event as the feeder reads it from the topic, of a flip by default."""
    given: dict[str, Any] = {
        "tenant": "default", "run": "live", "conversation": "room", "holder": "ann", "turn": f"m{sequence}",
        "revision": 0, "target": TargetRef("t-1", "whether tea beats coffee"), "before": Stance.SUPPORT,
        "after": Stance.OPPOSE, "policy": "p", "marks": (),
    } | rest  # fmt: skip
    if kind is EventType.FLIPPED:
        given.setdefault("trigger", Trigger(TriggerKind.FACTUAL_LOGICAL, ("m0",), ("ben",), 0.7))
    flip = kind in {EventType.FLIPPED, EventType.RETRACTED}
    time = START + dt.timedelta(seconds=sequence)
    event = events.make(
        Position(**given), kind=kind, time=time, sequence=sequence, previous=sequence - 1 if flip else None,
        record=f"r{sequence}",
    )  # fmt: skip
    found = entry_of("stances", "live", None, events.encode(event))
    assert isinstance(found, Told)
    return found


async def put(views: Views, *entries: Any) -> None:
    """Have the views keep entries."""
    await views.put(Batch(entries))


class Subscriber:
    """A client that resumes by Last-Event-ID whenever its stream ends, as EventSource does."""

    def __init__(self, url: str, path: str = "/v1/events", key: str = FIRST_KEY) -> None:
        self.url, self.path, self.key = url, path, key
        self.events: list[ServerSentEvent] = []  # events of the topics
        self.words: list[ServerSentEvent] = []  # the gateway's own
        self.last: str | None = None
        self.opened = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with httpx.AsyncClient(headers=headers, timeout=DEADLINE, verify=False) as made:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    await self._follow(made)
                await asyncio.sleep(0.02)

    async def _follow(self, made: httpx.AsyncClient) -> None:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": self.last} if self.last else {})
        async with made.stream("GET", self.url + self.path, headers=headers) as response:
            if response.status_code != 200:
                return
            async for event in EventSource(response).aiter_sse():
                self.take(event)

    def take(self, event: ServerSentEvent) -> None:
        own = event.event in {"volteface.open", "volteface.gap", "volteface.dropped"}
        (self.words if own else self.events).append(event)
        self.opened += event.event == "volteface.open"
        self.last = event.id


@contextlib.asynccontextmanager
async def following(*subscribers: Subscriber) -> AsyncIterator[None]:
    """The subscribers at work."""
    tasks = [asyncio.create_task(one.run()) for one in subscribers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def standing(settings: Settings) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values that the turns topic holds."""
    consumer = AIOKafkaConsumer(
        **client_options(settings), auto_offset_reset="earliest", fetch_max_wait_ms=20
    )
    await consumer.start()
    try:
        places = [TopicPartition(topics.topic(settings, "turns"), at) for at in range(settings.partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        found = list[tuple[bytes | None, bytes | None]]()
        async with asyncio.timeout(DEADLINE):
            while len(found) < sum(ends.values()):
                batch = await consumer.getmany(timeout_ms=100)
                found += [(record.key, record.value) for got in batch.values() for record in got]
        return found
    finally:
        await consumer.stop()
