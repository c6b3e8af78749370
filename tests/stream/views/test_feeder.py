"""The feeder between both brokers and both databases: every event once, in order, whatever ends meanwhile."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from structlog.testing import capture_logs

from stream import topics
from stream.database import Database, DatabaseUnavailable, open_database
from stream.database.upgrading import upgrade
from stream.sender import Sender
from stream.settings import Settings
from stream.store.port import Message
from stream.views import feeder as module
from stream.views.feeder import Feeder
from stream.views.memory import MemoryViews
from stream.views.port import Batch, Views
from stream.views.rebuilding import RebuildFailed, rebuild
from stream.views.sql import SqlViews
from tests.postgres import PostgresServer
from tests.stream.views.telling import START
from tracker import events, keys
from tracker.conversation import Header
from tracker.events import Event, EventType, Position, TargetRef
from tracker.ledger import HeaderRow, StateRow
from tracker.machine import StanceState
from tracker.stances import Stance
from tracker.targets import Target

pytestmark = pytest.mark.long

PATIENCE = 60.0
RUN = """
import asyncio
from stream import settings
from stream.views import role
loaded = settings.load()
asyncio.run(role.feed(loaded, loaded.database, stop=asyncio.Event()))
"""
ROOT = Path(__file__).parents[3]


@pytest.fixture
def tenant() -> str:
    return f"tenant-{uuid4().hex[:12]}"


@pytest.fixture
async def settings(broker: str, topic_prefix: str, request: pytest.FixtureRequest) -> Settings:
    found = Settings(
        broker=f"kafka://{broker}",
        topic_prefix=topic_prefix,
        partitions=2,
        broker_idempotence="kafka" in request.node.name,
        rebalance_seconds=2.0,
        batch_seconds=0.9,
    )
    await topics.ensure(found)
    return found


def said(tenant: str, room: str, sequence: int, kind: EventType = EventType.ESTABLISHED) -> Event:
    flips = kind is EventType.FLIPPED
    data = Position(
        tenant=tenant,
        run="live",
        conversation=room,
        turn=f"m{sequence}",
        revision=0,
        holder="ann",
        target=TargetRef("t-1", "whether x"),
        before=Stance.SUPPORT if flips else Stance.UNKNOWN,
        after=Stance.OPPOSE if flips else Stance.SUPPORT,
        policy="p",
        marks=(),
    )
    previous = 0 if flips else None
    return events.make(
        data, kind=kind, time=START, sequence=sequence, previous=previous, record=f"r{sequence}"
    )


def stance(event: Event) -> Message:
    key = keys.conversation_key(event.data.tenant, event.data.conversation)
    return Message("stances", key, events.encode(event))


def state(tenant: str, room: str, version: int, stance: Stance | None) -> Message:
    row = StateRow(
        tenant=tenant, run="live", conversation=room, holder="ann", target="t-1",
        state=StanceState(stance or Stance.UNKNOWN, "m1", 0.5, 1), version=version,
    )  # fmt: skip
    key = keys.holder_key(tenant, room, "ann", "t-1")
    return Message("states", key, None if stance is None else msgspec.json.encode(row))


def header(tenant: str, room: str, version: int) -> Message:
    found = Header(version=version, newest=START, targets=(Target("t-1", "whether x"),))
    row = HeaderRow(tenant=tenant, run="live", conversation=room, header=found)
    return Message("states", keys.conversation_key(tenant, room), msgspec.json.encode(row))


@asynccontextmanager
async def sending(settings: Settings) -> AsyncIterator[Sender]:
    sender = Sender(settings)
    try:
        yield sender
    finally:
        await sender.close()


async def send(settings: Settings, messages: Sequence[Message]) -> None:
    async with sending(settings) as sender:
        await sender.send(messages)


@asynccontextmanager
async def feeding(settings: Settings, views: Views, **rest: Any) -> AsyncIterator[Feeder]:
    feeder, stop = Feeder(settings, views, **rest), asyncio.Event()
    running = asyncio.ensure_future(feeder.run(stop))
    try:
        yield feeder
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE):
            await running


async def until(said: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a question is answered with yes."""
    async with asyncio.timeout(PATIENCE):
        while not await said():  # noqa: ASYNC110 - the database is asked
            await asyncio.sleep(0.02)


async def reached(views: Views, tenant: str, position: int) -> None:
    async def there() -> bool:
        return await views.latest(tenant) >= position

    await until(there)


async def in_order(views: Views, tenant: str, room: str, expected: Sequence[Event]) -> bool:
    from stream.views.port import Filter

    stored = await views.events(tenant, Filter(conversation=room), after=0, limit=1000)
    return [each.id for each in stored] == [each.id for each in expected]


async def test_all_is_fed_and_told(settings: Settings, database: Database, tenant: str) -> None:
    views, told = SqlViews(database), asyncio.Event()
    given = [said(tenant, "a", 1), said(tenant, "a", 2, EventType.FLIPPED)]
    alert = {
        "specversion": "1.0", "id": f"alert-{tenant}", "type": "volteface.alert.raised",
        "time": "2026-11-29T20:00:00Z",
        "data": {"tenant": tenant, "run": "live", "conversation": "a", "more": [1]},
    }  # fmt: skip
    async with feeding(settings, views, told=told.set):
        await send(
            settings, [*map(stance, given), state(tenant, "a", 2, Stance.OPPOSE), header(tenant, "a", 2)]
        )
        await reached(views, tenant, 2)
        async with asyncio.timeout(PATIENCE):
            await told.wait()
        await send(settings, [Message("alerts", b"k", msgspec.json.encode(alert))])
        await reached(views, tenant, 3)

        async def held() -> bool:
            return len(await views.holders(tenant)) == 1 and await views.conversation(tenant, "a") is not None

        await until(held)
        await send(settings, [state(tenant, "a", 3, None)])

        async def gone() -> bool:
            return await views.holders(tenant) == []

        await until(gone)
    stored = await views.events(tenant, after=0)
    assert [each.body for each in stored[:2]] == [events.encode(each) for each in given]
    view = await views.conversation(tenant, "a")
    assert view is not None
    assert (view.row.events, view.row.flips, view.targets[0].proposition) == (3, 1, "whether x")


async def test_what_is_none_of_ours_is_passed_and_told(
    settings: Settings, database: Database, tenant: str
) -> None:
    views = SqlViews(database)
    other_run = msgspec.structs.replace(
        said(tenant, "a", 1), data=msgspec.structs.replace(said(tenant, "a", 1).data, run="other")
    )
    whole = events.encode(said(tenant, "a", 1))
    wrong = [
        Message("stances", b"k", b"no json"),
        Message("stances", b"k", None),
        Message("stances", b"k", events.encode(other_run)),
        Message("stances", b"k", whole.replace(b'"sequence":"0', b'"sequence":"9')),
        Message("stances", b"k", whole.replace(b'"ann"', b'"%s"' % (b"a" * 600))),
        Message("states", b"a/b/c", b"{}"),
        Message("states", b"%ff/b", b"{}"),
        Message("states", keys.holder_key(tenant, "b", "c", "d"), state(tenant, "a", 1, Stance.OPPOSE).value),
        Message("alerts", b"k", b'{"id": 5}'),
    ]
    with capture_logs() as logged:
        async with feeding(settings, views) as feeder:
            await send(settings, [*wrong, stance(said(tenant, "a", 7))])
            await reached(views, tenant, 1)

            async def counted() -> bool:
                return feeder.counts.refused == len(wrong)

            await until(counted)
    refused = [line for line in logged if line["event"] == "views.message_refused"]
    assert len(refused) == len(wrong)
    assert not any("ann" in str(line) or tenant in str(line) for line in refused)
    assert await views.holders(tenant) == []


async def test_one_that_the_database_refuses_is_passed_alone(
    settings: Settings, database: Database, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state whose number no integer of the database holds; the others of its batch are stored."""
    views = SqlViews(database)
    row = StateRow(
        tenant=tenant, run="live", conversation="a", holder="bo", target="t-1",
        state=StanceState(Stance.OPPOSE, "m1", 0.5, 2**70), version=1,
    )  # fmt: skip
    unkept = Message("states", keys.holder_key(tenant, "a", "bo", "t-1"), msgspec.json.encode(row))
    async with feeding(settings, views) as feeder:
        await send(
            settings, [state(tenant, "a", 1, Stance.OPPOSE), unkept, state(tenant, "a", 2, Stance.SUPPORT)]
        )

        async def kept() -> bool:
            rows = await views.holders(tenant)
            return [row.stance for row in rows] == [Stance.SUPPORT] and feeder.counts.refused == 1

        await until(kept)


class Away(MemoryViews):
    """Views whose database is away for some calls."""

    def __init__(self, fails: int) -> None:
        super().__init__()
        self.fails = fails

    async def put(self, batch: Batch) -> Any:
        if self.fails:
            self.fails -= 1
            raise DatabaseUnavailable("away")
        return await super().put(batch)


async def test_a_database_that_is_away_is_waited_for(
    settings: Settings, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.01)
    views = Away(fails=3)
    given = [said(tenant, "a", number) for number in range(1, 20)]
    async with feeding(settings, views) as feeder:
        await send(settings, [*map(stance, given)])
        await reached(views, tenant, len(given))
    assert await in_order(views, tenant, "a", given)
    assert feeder.counts.messages == len(given)


async def test_two_feeders_share_and_take_over(settings: Settings, database: Database, tenant: str) -> None:
    views = SqlViews(database)
    rooms = {room: [said(tenant, room, number) for number in range(1, 16)] for room in "abcdef"}
    mixed = [event for each in zip(*rooms.values(), strict=True) for event in each]
    async with feeding(settings, views):
        await send(settings, [*map(stance, mixed[:30])])
        await reached(views, tenant, 5)
        async with feeding(settings, views):
            await send(settings, [*map(stance, mixed[30:60])])
            await reached(views, tenant, 60)
        await send(settings, [*map(stance, mixed[60:])])
        await reached(views, tenant, len(mixed))
    for room, given in rooms.items():
        assert await in_order(views, tenant, room, given)
    assert await views.latest(tenant) == len(mixed)


@pytest.mark.long
async def test_a_killed_feeder_stores_every_event_once(
    settings: Settings, database: Database, database_url: str, tenant: str
) -> None:
    views = SqlViews(database)
    rooms = {room: [said(tenant, room, number) for number in range(1, 201)] for room in "ab"}
    mixed = [event for each in zip(*rooms.values(), strict=True) for event in each]
    environment = os.environ | {
        "VOLTEFACE_BROKER": settings.broker,
        "VOLTEFACE_TOPIC_PREFIX": settings.topic_prefix,
        "VOLTEFACE_PARTITIONS": "2",
        "VOLTEFACE_REBALANCE_SECONDS": "2",
        "VOLTEFACE_BATCH_SECONDS": "0.9",
        "VOLTEFACE_DATABASE": database_url,
    }
    async with sending(settings) as sender:
        for part in range(2):
            feeder = await asyncio.create_subprocess_exec(
                sys.executable, "-c", RUN, env=environment, cwd=ROOT
            )
            try:
                for start in range(part * 200, part * 200 + 200, 20):
                    await sender.send([*map(stance, mixed[start : start + 20])])
                await reached(views, tenant, part * 200 + 50)
            finally:
                feeder.send_signal(signal.SIGKILL)
                await feeder.wait()
    async with feeding(settings, views):
        await reached(views, tenant, len(mixed))
    for room, given in rooms.items():
        assert await in_order(views, tenant, room, given)
    assert await views.latest(tenant) == len(mixed)
    assert sum(row.events for row in await views.conversations(tenant)) == len(mixed)


async def test_younger_topics_are_read_from_their_beginning(settings: Settings, tenant: str) -> None:
    """As under `up`, whose broker forgets: what the views know of offsets is of topics that are gone."""
    views = MemoryViews()
    names = [topics.topic(settings, name) for name in ("stances", "states", "alerts")]
    await views.put(Batch((), {(name, partition): 2 for name in names for partition in range(2)}))
    given = [said(tenant, "a", number) for number in range(1, 6)]
    await send(settings, [*map(stance, given)])
    async with feeding(settings, views, fresh=True):
        await reached(views, tenant, 5)
    assert await in_order(views, tenant, "a", given)


async def test_offsets_past_the_end_are_of_another_topic(settings: Settings, tenant: str) -> None:
    views = MemoryViews()
    name = topics.topic(settings, "stances")
    await views.put(Batch((), {(name, partition): 1000 for partition in range(2)}))
    await send(settings, [stance(said(tenant, "a", 1))])
    async with feeding(settings, views):
        await reached(views, tenant, 1)


async def test_a_rebuild_keeps_positions_and_brings_back_what_is_lost(
    settings: Settings, database: Database, tenant: str
) -> None:
    views = SqlViews(database)
    given = [said(tenant, "a", number) for number in range(1, 8)]
    await send(settings, [*map(stance, given), state(tenant, "a", 1, Stance.OPPOSE), header(tenant, "a", 9)])
    async with feeding(settings, views):
        await reached(views, tenant, 7)
    before = await views.events(tenant, after=0)
    from sqlalchemy import delete, update

    from stream.database import schema

    async with database.writing() as connection:
        own = schema.events.c.tenant == tenant
        await connection.execute(delete(schema.events).where(own, schema.events.c.position > 5))
        await connection.execute(update(schema.conversations).values(events=0))
        await connection.execute(delete(schema.states).where(schema.states.c.tenant == tenant))
    counts = await rebuild(settings, views)
    assert (counts.messages, counts.refused) == (9, 0)
    after = await views.events(tenant, after=0)
    assert after[:5] == before[:5]
    assert [(each.position, each.id) for each in after[5:]] == [(8, given[5].id), (9, given[6].id)]
    assert len(await views.holders(tenant)) == 1
    [row] = await views.conversations(tenant)
    assert row.events == 7


async def test_a_rebuild_needs_the_topics(broker: str, topic_prefix: str) -> None:
    missing = Settings(broker=f"kafka://{broker}", topic_prefix=topic_prefix)
    with pytest.raises(RebuildFailed, match="has no topic"):
        await rebuild(missing, MemoryViews())


@pytest.mark.long
async def test_a_postgresql_that_is_killed_loses_nothing(settings: Settings, tenant: str) -> None:
    given = [said(tenant, "a", number) for number in range(1, 61)]
    with PostgresServer() as server:
        url = server.fresh()
        await upgrade(url)
        database = open_database(url)
        views = SqlViews(database)
        try:
            with capture_logs() as logged:
                async with feeding(settings, views):
                    await send(settings, [*map(stance, given[:30])])
                    await reached(views, tenant, 1)
                    await asyncio.to_thread(server.halt, kill=True)
                    await send(settings, [*map(stance, given[30:])])

                    async def told() -> bool:
                        return any(line["event"] == "views.database_away" for line in logged)

                    await until(told)
                    await asyncio.to_thread(server.resume)
                    await reached(views, tenant, len(given))
            assert await in_order(views, tenant, "a", given)
        finally:
            await database.close()
