"""What holds one partition up holds up no other: a busy room before a slow model, a state that is lost."""

import asyncio
import contextlib
from collections.abc import Collection, Sequence

import msgspec
import pytest
from redis.asyncio import Redis

from models.language.rule import RuleEngine
from models.local import LocalReader
from models.reader import ObserveRequest
from stream import restore, transport, wholeness
from stream.offsets import Partition
from stream.settings import Settings
from tests.end_to_end.harness import (
    LEFT_OPEN,
    Collected,
    Producer,
    collecting,
    drained,
    key,
    producing,
    running,
    target,
    turn,
)
from tracker import records
from tracker.observations import Observation

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.long]

BUSY_TURNS = 8000  # more than an agent ever carries
STEADY_TURNS, AHEAD = 1500, 700
READ_SECONDS = 0.02


class Slow(LocalReader):
    """Reads by rule, and takes as long for a wave as a model would."""

    seconds = READ_SECONDS

    async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        await asyncio.sleep(self.seconds)
        return await super().observe(requests)


class Brisk(Slow):
    """So slow that a room piles up, so quick that it is soon worked off."""

    seconds = 0.003


async def rooms_apart(producer: Producer) -> tuple[str, str]:
    """Two conversations with a target each, in the two partitions."""
    found: dict[int, str] = {}
    for number in range(100):
        room = f"room-{number}"
        partition, _ = await producer.raw(key(room), records.encode(target(room)))
        found.setdefault(partition, room)
        if len(found) == 2:
            return found[0], found[1]
    raise AssertionError("a hundred rooms in one partition")


def flips(collected: Collected, room: str) -> list[str]:
    return [
        event["data"]["turn"]
        for event in collected.events("flips").values()
        if event["data"]["conversation"] == room
    ]


async def test_a_busy_room_before_a_slow_model_starves_no_other(settings: Settings) -> None:
    """Faults, row 29."""
    settings = msgspec.structs.replace(settings, batch_waves=8)
    async with producing(settings) as producer, collecting(settings) as collected:
        busy, calm = await rooms_apart(producer)
        await producer.records([turn(busy, f"m-{number}", holder="bob") for number in range(BUSY_TURNS)])
        async with running(settings, reader=Slow(RuleEngine())):
            await collected.until(lambda seen: len(seen.journal(busy)) > 20, "the busy room is begun")
            await producer.records([turn(calm, "first"), turn(calm, "next", "-1")])
            await collected.until(lambda seen: flips(seen, calm), "the other room's flip")
            await collected.collect()
            assert len(collected.journal(busy)) < 1000


async def test_a_room_that_is_held_back_again_and_again_loses_no_turn(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faust would drop what it has fetched of a partition that is paused, and commit past it."""
    pauses: list[object] = []
    pause = transport.ConsumerFlow.pause

    def noted(flow: transport.ConsumerFlow, partitions: Collection[Partition]) -> None:
        pauses.append(partitions)
        pause(flow, partitions)

    monkeypatch.setattr(transport.ConsumerFlow, "pause", noted)
    settings = msgspec.structs.replace(settings, batch_waves=16)
    async with producing(settings) as producer, collecting(settings) as collected:
        busy, calm = await rooms_apart(producer)
        async with running(settings, reader=Brisk(RuleEngine())):
            for start in range(0, STEADY_TURNS, 100):
                await producer.records([turn(busy, f"m-{start + at}") for at in range(100)])
                await producer.records([turn(calm, f"c-{start}")])
                await collected.until(
                    lambda seen, start=start: len(seen.journal(busy)) >= start - AHEAD,  # type: ignore[misc]
                    "the busy room goes on",
                )
            await collected.until(lambda seen: len(seen.journal(busy)) == STEADY_TURNS + 1, "all of it")
            await drained(settings)
    assert pauses


async def test_a_partition_that_cannot_be_restored_holds_up_no_other(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "MOST_LOST", 3)
    monkeypatch.setattr(wholeness, "STUCK_SECONDS", 0.5)
    monkeypatch.setattr(wholeness, "LOOK_SECONDS", 0.1)
    async with producing(settings) as producer, collecting(settings) as collected:
        lost, kept = await rooms_apart(producer)
        async with running(settings):
            await producer.records([turn(lost, f"m-{number}") for number in range(5)])
            await producer.records([turn(kept, "first")])
            await drained(settings)
        await _forget(settings, lost)
        async with running(settings):
            await producer.records([turn(lost, "next", "-1"), turn(kept, "next", "-1")])
            await collected.until(lambda seen: flips(seen, kept), "the flip where nothing is lost")
            assert not flips(collected, lost)
            monkeypatch.setattr(restore, "MOST_LOST", 20_000)
            await collected.until(lambda seen: flips(seen, lost), "the flip of what was restored")
        await collected.rest()
    assert collected.events()  # no id with two payloads


async def _forget(settings: Settings, room: str) -> None:
    async with contextlib.aclosing(Redis.from_url(settings.redis)) as client:
        found = [name async for name in client.scan_iter(f"{settings.topic_prefix}*{room}*")]
        assert found
        await client.delete(*found)
