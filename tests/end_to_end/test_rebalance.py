"""A second agent joins and the first leaves while turns come: no event is lost, nothing folded twice."""

import asyncio
from contextlib import AsyncExitStack

import msgspec
import pytest

from stream.settings import Settings
from stream.store.port import ConversationKey, Need
from stream.store.redis import RedisStore
from tests.end_to_end.harness import (
    LEFT_OPEN,
    Collected,
    Producer,
    collecting,
    drained,
    gapless,
    producing,
    running,
    target,
    turn,
)
from tracker.records import Record

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.long]

ROOMS, ROUNDS = 8, 120
TEXTS = ("+1 yes", "-1 no")  # in turn: the first establishes, every other flips


def rounds() -> list[list[Record]]:
    rooms = [f"room-{number}" for number in range(ROOMS)]
    declared: list[Record] = [target(room) for room in rooms]
    return [declared] + [
        [turn(room, f"m-{number}", TEXTS[number % 2]) for room in rooms] for number in range(ROUNDS)
    ]


async def feed(producer: Producer, given: list[list[Record]]) -> None:
    for records in given:
        await producer.records(records)
        await asyncio.sleep(0.05)  # the pace of a busy chat, so that the rebalances fall among turns


async def test_agents_come_and_go(settings: Settings) -> None:
    settings = msgspec.structs.replace(settings, rebalance_seconds=2.0, batch_seconds=0.5, batch_records=20)
    given = rounds()
    count = sum(map(len, given))
    async with producing(settings) as producer, collecting(settings) as collected, AsyncExitStack() as stack:
        first = AsyncExitStack()
        stack.push_async_exit(first)
        await first.enter_async_context(running(settings))
        feeding = asyncio.create_task(feed(producer, given))
        await collected.until(lambda seen: len(seen.arrivals()) > count // 4, "a quarter")
        await stack.enter_async_context(running(settings))
        await collected.until(lambda seen: len(seen.arrivals()) > count // 2, "a half")
        await first.aclose()
        await feeding
        await collected.until(lambda seen: len(seen.arrivals()) == count, "everything")
        await drained(settings)
        await collected.collect(500)
    check(collected, given)
    assert await versions(settings) == [ROUNDS + 1] * ROOMS


def check(collected: Collected, given: list[list[Record]]) -> None:
    applied = {(entry["conversation"], entry["entry"]["id"]) for entry in collected.journal()}
    assert applied == {(record.conversation, _id(record)) for records in given for record in records}
    assert len(collected.arrivals()) == len(applied), "a record was folded twice"
    events = collected.events()
    assert gapless(events)
    assert len(events) == ROOMS * ROUNDS
    assert len(collected.events("flips")) == ROOMS * (ROUNDS - 1)
    assert not collected.dead_letters
    assert not [entry for entry in collected.journal() if "marks" in entry["entry"]], "a turn was overtaken"


def _id(record: Record) -> str:
    return record.id or f"create/{getattr(record, 'turn', '')}/0"


async def versions(settings: Settings) -> list[int]:
    store = RedisStore(settings.redis, settings.run, prefix=settings.topic_prefix)
    try:
        needs = [Need(ConversationKey("default", f"room-{number}")) for number in range(ROOMS)]
        return [found.conversation.header.version for found in await store.load(needs)]
    finally:
        await store.close()
