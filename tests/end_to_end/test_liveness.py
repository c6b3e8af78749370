"""Agents that hang end with status 1 and the next one finishes their turns; agents that wait stay."""

import asyncio
import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiokafka import AIOKafkaProducer

from stream import kafka, topics
from stream.embedded import EmbeddedRedis
from stream.embedded.process import free_port
from stream.settings import Settings
from tests.end_to_end.harness import (
    AGENT,
    LEFT_OPEN,
    agent_process,
    collecting,
    drained,
    ended,
    key,
    producing,
    running,
    turn,
)
from tests.end_to_end.test_outages import batch, reached, targets, whole
from tracker import records

pytestmark = pytest.mark.filterwarnings(LEFT_OPEN)

# What they show is the agent's own; on both brokers they would take minutes of CI.
ONE_BROKER = pytest.mark.parametrize("named_broker", ["tansu"], indirect=True)
STALL_SECONDS = 2.0
PATIENCE_SECONDS = 60.0
TURNS = 20

QUICK = """
from stream import logs, settings, watchdog
logs.configure(settings.load())
watchdog.REQUEST_TIMEOUT_SECONDS = 0.0
watchdog.END_SECONDS = 1.0
"""
# A handler that never returns, whatever time limit or cancellation it is given.
HUNG = """
import asyncio
from stream import roles

class Hung:
    async def observe(self, requests):
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass

    async def close(self):
        pass

async def reader(_):
    return Hung()

roles.reader = reader
"""
BROKEN = """
from stream import transport
sound = transport._Thread._fetch_records

async def fetch(self, consumer, active, **named):
    return await sound(self, consumer, {tp for tp in active if tp.partition != 1}, **named)

transport._Thread._fetch_records = fetch
"""


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return msgspec.structs.replace(
        settings,
        stall_seconds=STALL_SECONDS,
        reader_seconds=1.0,
        probes=f"127.0.0.1:{free_port()}",
    )


async def asked(settings: Settings, path: str = "/ready") -> tuple[int, str]:
    """The answer of a probe; status 0 where nobody answers."""
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://{settings.probes}{path}") as got:
            return got.status, await got.text()
    except aiohttp.ClientError:
        return 0, ""


async def seen(settings: Settings, status: int, what: str = "") -> dict[str, Any]:
    """Wait until `/ready` answers with a status, and with the words that are looked for."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            got, text = await asked(settings)
            if got == status and re.search(what, text):
                return json.loads(text)  # type: ignore[no-any-return]
            await asyncio.sleep(0.05)


def told(log: Path, event: str) -> list[dict[str, Any]]:
    """What an agent's log says of an event."""
    lines = log.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and f'"{event}"' in line]


async def end_and_finish(settings: Settings, log: Path, script: str) -> dict[str, Any]:
    """An agent stalls and ends, and another one finishes its turns; what `/ready` said of the stall."""
    async with producing(settings) as producer, collecting(settings) as collected:
        with agent_process(settings, log, QUICK + script + AGENT) as process:
            await seen(settings, 200)
            await producer.records([*targets(), *batch(0, TURNS)])
            state = await seen(settings, 503, "stalled")
            assert await asked(settings, "/live") == (200, '{"status": "alive"}')
            assert await ended(process, PATIENCE_SECONDS) == 1, told(log, "partition.stalled")
        async with running(settings):
            await collected.until(reached(TURNS), "what the first agent left")
            await drained(settings)
            await whole(collected, TURNS)
    return state


@ONE_BROKER
async def test_a_hung_handler_ends_the_agent_and_the_next_one_finishes(
    settings: Settings, tmp_path: Path
) -> None:
    log = tmp_path / "agent.log"
    state = await end_and_finish(settings, log, HUNG)
    busy = [partition["verdict"] for partition in state["partitions"].values() if partition["lag"]]
    assert set(busy) == {"stalled"}
    stalls = told(log, "partition.stalled")
    assert {entry["due"] for entry in stalls} == {"finish"}
    assert len(stalls) == len({entry["partition"] for entry in stalls}), "one line a stall"


@ONE_BROKER
async def test_a_partition_that_is_not_fetched_is_named_and_ends_the_agent(
    settings: Settings, tmp_path: Path
) -> None:
    log = tmp_path / "agent.log"
    state = await end_and_finish(settings, log, BROKEN)
    assert state["partitions"]["1"]["verdict"] == "stalled"
    assert state["partitions"]["0"]["verdict"] != "stalled"
    [stall] = told(log, "partition.stalled")
    assert (stall["partition"], stall["due"]) == (1, "fetch")
    assert stall["lag"] > 0


@ONE_BROKER
async def test_an_outage_makes_an_agent_not_ready_and_never_ends_it(
    settings: Settings, tmp_path: Path
) -> None:
    log, allowed = tmp_path / "agent.log", settings.batch_seconds + 3 * settings.reader_seconds
    with EmbeddedRedis(tmp_path / "redis") as redis:
        settings = msgspec.structs.replace(settings, redis=redis.url)
        async with producing(settings) as producer, collecting(settings) as collected:
            with agent_process(settings, log, QUICK + AGENT) as process:
                await seen(settings, 200)
                await producer.records([*targets(), *batch(0, TURNS)])
                await collected.until(reached(TURNS), "what came before")
                await asyncio.to_thread(redis.halt)
                await producer.records(batch(TURNS, TURNS))
                await lasted(settings, process, allowed + 3 * STALL_SECONDS)
                await asyncio.to_thread(redis.resume)
                await collected.until(reached(2 * TURNS), "what came meanwhile")
                await seen(settings, 200)
                await whole(collected, 2 * TURNS)
    assert not told(log, "partition.stalled")


async def lasted(settings: Settings, process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Wait until an outage has lasted for so long; the agent is there all the time, and not ready."""
    await seen(settings, 503, "StoreUnavailable")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            status, text = await asked(settings)
            assert (status, process.poll()) == (503, None)
            if json.loads(text)["paused"]["seconds"] > seconds:
                return
            await asyncio.sleep(0.1)


@pytest.mark.long
async def test_an_idle_agent_is_ready(settings: Settings, tmp_path: Path) -> None:
    """Also where the log ends with a marker, which is no record and never finished."""
    log = tmp_path / "agent.log"
    async with producing(settings) as producer, collecting(settings) as collected:
        with agent_process(settings, log, QUICK + AGENT):
            await seen(settings, 200, '"verdict": "idle"')
            await producer.records([*targets(), *batch(0, TURNS)])
            await collected.until(reached(TURNS), "all of it")
            if settings.broker_idempotence:  # Apache Kafka: Tansu knows no transactions
                await in_one_transaction(settings)
                await collected.until(lambda seen: seen.journal("marked"), "what a marker follows")
            state = await seen(settings, 200, '(?s)"verdict": "idle".*"verdict": "idle"')
            assert all(partition["lag"] == 0 for partition in state["partitions"].values())
            since = time.monotonic()
            while time.monotonic() - since < 5.0 + 2.5 * STALL_SECONDS:
                status, text = await asked(settings)
                assert status == 200, text
                assert "stalled" not in text  # what is acked may still wait for its commit
            await seen(settings, 200, '(?s)"verdict": "idle".*"verdict": "idle"')
            _, metrics = await asked(settings, "/metrics")
            assert 'volteface_agent_partition_lag{partition="1"} 0.0' in metrics


async def in_one_transaction(settings: Settings) -> None:
    identity = {"transactional_id": settings.topic_prefix}
    async with kafka.running(AIOKafkaProducer, settings, **identity) as producer, producer.transaction():
        record = records.encode(turn("marked", "m-1"))
        await producer.send_and_wait(topics.topic(settings, "turns"), record, key=key("marked"))


async def test_a_taken_port_is_said_at_the_start(settings: Settings, tmp_path: Path) -> None:
    host, _, port = str(settings.probes).rpartition(":")
    taken = await asyncio.start_server(lambda *_: None, host, int(port))
    async with taken:
        with agent_process(settings, tmp_path / "agent.log") as process:
            assert await ended(process, PATIENCE_SECONDS) == 1
    assert f"VOLTEFACE_PROBES: cannot listen on {settings.probes}" in (tmp_path / "agent.log").read_text()
