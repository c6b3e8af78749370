"""Parts that are away, and stops: the agent waits and refuses nothing, and stops in time."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from models.reader import ReaderUnavailable
from stream.app import STOP_TIMEOUT_SECONDS
from stream.embedded import EmbeddedBroker, EmbeddedRedis
from stream.embedded.broker import Broker
from stream.embedded.process import free_port
from stream.settings import Settings
from stream.topics import TopicsUnavailable
from tests.end_to_end.harness import (
    LEFT_OPEN,
    Collected,
    agent_process,
    collecting,
    drained,
    ended,
    gapless,
    producing,
    running,
    settings_of,
    target,
    turn,
)
from tests.stream.fakes import until
from tracker.records import Record

pytestmark = pytest.mark.filterwarnings(LEFT_OPEN)

ROOMS = 4
STOP_SECONDS = 5.0


def batch(start: int, count: int) -> list[Record]:
    """Turns of a few rooms, each of which moves its holder."""
    return [
        turn(f"room-{number % ROOMS}", f"m-{number}", "+1" if (number // ROOMS) % 2 else "-1")
        for number in range(start, start + count)
    ]


def targets() -> list[Record]:
    return [target(f"room-{number}") for number in range(ROOMS)]


def reached(count: int) -> Callable[[Collected], bool]:
    return lambda seen: len(seen.arrivals()) >= ROOMS + count


async def whole(collected: Collected, count: int) -> None:
    assert len(collected.arrivals()) == ROOMS + count
    await collected.until(lambda seen: len(seen.events()) == count, "an event a turn")  # after the journal
    assert gapless(collected.events())
    assert not collected.dead_letters


async def test_redis_is_restarted_in_the_middle(settings: Settings, tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "redis") as redis:
        settings = msgspec.structs.replace(settings, redis=redis.url)
        async with producing(settings) as producer, collecting(settings) as collected, running(settings):
            await producer.records([*targets(), *batch(0, 200)])
            await collected.until(reached(200), "what came before")
            await asyncio.to_thread(redis.halt)
            await producer.records(batch(200, 200))
            await collected.collect(500)
            assert len(collected.arrivals()) == ROOMS + 200
            await asyncio.to_thread(redis.resume)
            await collected.until(reached(400), "what came meanwhile")
            await drained(settings)
            await whole(collected, 400)


async def test_redis_is_away_at_the_start(settings: Settings) -> None:
    port = free_port()
    settings = msgspec.structs.replace(settings, redis=f"redis://127.0.0.1:{port}/0")
    async with producing(settings) as producer, collecting(settings) as collected, running(settings):
        await producer.records([*targets(), *batch(0, 20)])
        await collected.collect(500)
        with EmbeddedRedis(port=port):
            await collected.until(reached(20), "all of it")
            await whole(collected, 20)
            await drained(settings)


async def test_the_broker_is_restarted_in_the_middle(kafka_settings: Settings, kafka_broker: Broker) -> None:
    """Its topics are followed anew afterwards: a follower must not be what is tested."""
    async with running(kafka_settings):
        async with producing(kafka_settings) as producer, collecting(kafka_settings) as collected:
            await producer.records([*targets(), *batch(0, 200)])
            await collected.until(reached(200), "what came before")
            await producer.records(batch(200, 200))
        await asyncio.to_thread(kafka_broker.restart, kill=True)
        async with producing(kafka_settings) as producer, collecting(kafka_settings) as collected:
            await producer.records(batch(400, 200))
            await collected.until(reached(600), "everything", seconds=60)
            await drained(kafka_settings)
            await whole(collected, 600)


class Away:
    """A reader that is away until told to come back."""

    def __init__(self) -> None:
        self.calls = 0

    async def observe(self, requests: object) -> list[object]:
        self.calls += 1
        raise ReaderUnavailable("away", retry_after=30.0)

    explain = observe

    async def close(self) -> None:
        pass


async def test_it_stops_in_time_while_the_reader_is_away(settings: Settings) -> None:
    away = Away()
    async with producing(settings) as producer:
        async with running(settings, reader=away):  # type: ignore[arg-type]
            await producer.records([*targets(), *batch(0, 20)])
            await until(lambda: away.calls, 20)
            began = time.monotonic()
        assert time.monotonic() - began < STOP_SECONDS
        async with collecting(settings) as collected, running(settings):
            await collected.until(reached(20), "what the first agent never acked")
            await whole(collected, 20)


@pytest.mark.long
async def test_it_stops_in_time_under_load(settings: Settings) -> None:
    settings = msgspec.structs.replace(settings, batch_records=20)
    async with producing(settings) as producer, collecting(settings) as collected:
        async with running(settings):
            await producer.records([*targets(), *batch(0, 3000)])
            await collected.until(reached(100), "a beginning")
            began = time.monotonic()
        assert time.monotonic() - began < STOP_SECONDS
        assert len(collected.arrivals()) < ROOMS + 3000
        async with running(msgspec.structs.replace(settings, batch_records=500)):
            await collected.until(reached(3000), "the rest")
            await drained(settings)
            await whole(collected, 3000)


async def test_a_process_ends_on_sigterm_with_status_0(settings: Settings, tmp_path: Path) -> None:
    async with producing(settings) as producer, collecting(settings) as collected:
        await producer.records([*targets(), *batch(0, 3000)])
        with agent_process(settings, tmp_path / "agent.log") as process:
            await collected.until(reached(10), "a beginning")
            process.terminate()
            assert await ended(process, STOP_SECONDS) == 0, (tmp_path / "agent.log").read_text()


async def test_a_process_ends_with_the_broker_gone(topic_prefix: str, redis_url: str, tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        settings = settings_of(broker.url, redis_url, topic_prefix, idempotence=False)
        with agent_process(settings, tmp_path / "agent.log") as process:
            async with producing(settings) as producer, collecting(settings) as collected:
                await producer.records([*targets(), *batch(0, 20)])
                await collected.until(reached(20), "a beginning")
            await asyncio.to_thread(broker.halt, kill=True)
            process.terminate()
            assert await ended(process, STOP_TIMEOUT_SECONDS + STOP_SECONDS) == 0


async def test_without_a_broker_it_says_so_and_ends(topic_prefix: str, redis_url: str) -> None:
    broker = f"kafka://127.0.0.1:{free_port()}"
    settings = settings_of(broker, redis_url, topic_prefix, idempotence=True)
    with pytest.raises(TopicsUnavailable, match="set VOLTEFACE_BROKER"):
        async with running(settings) as task:
            await task
