"""`volteface rebuild` as a process: agents end, Redis loses all, and agents go on as if nothing had been."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
import typer
from aiokafka import AIOKafkaConsumer
from redis.asyncio import Redis
from typer.testing import CliRunner

from stream import lag, logs, rebuilding, topics
from stream.cli.rebuild import rebuild as command_of_rebuild
from stream.embedded import EmbeddedRedis
from stream.putting import Report
from stream.settings import Settings
from tests.end_to_end.harness import (
    LEFT_OPEN,
    collecting,
    drained,
    environment,
    gapless,
    producing,
    running,
    settings_of,
    target,
    turn,
)
from tests.stream.store.dump import dump

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.long]

ROOT = Path(__file__).parents[3]
ALONE = "import typer; from stream.cli.rebuild import rebuild; typer.run(rebuild)"
ROOMS = [f"room-{number}" for number in range(4)]


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """One Redis: that its versions agree is tested with the store."""
    with EmbeddedRedis() as server:
        yield server.url


@pytest.fixture
def settings(broker: str, redis_url: str, topic_prefix: str, request: pytest.FixtureRequest) -> Settings:
    idempotence = "kafka" in request.node.name
    return settings_of(f"kafka://{broker}", redis_url, topic_prefix, idempotence=idempotence)


async def rebuild(settings: Settings, *arguments: str) -> tuple[int, str]:
    """The command without what other commands import."""
    given = {**environment(settings), "VOLTEFACE_LOG_LEVEL": "error", "VOLTEFACE_RUN": ""}
    return await command(given, "-c", ALONE, *arguments)


async def command(given: dict[str, str], *arguments: str) -> tuple[int, str]:
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, *arguments],
        cwd=ROOT, env=given, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout == ""
    return done.returncode, done.stderr


@contextlib.asynccontextmanager
async def member(settings: Settings) -> AsyncIterator[None]:
    """A member of the agents' group. Tansu counts a group's first one for ever, until another has left."""
    consumer = AIOKafkaConsumer(
        topics.topic(settings, "turns"),
        bootstrap_servers=settings.bootstrap_servers,
        group_id=lag.group(settings),
        enable_auto_commit=False,
    )
    await consumer.start()
    try:
        yield
    finally:
        await consumer.stop()


async def states(settings: Settings) -> dict[bytes, object]:
    return await dump(settings.redis, settings.run, settings.topic_prefix)


async def emptied(settings: Settings) -> None:
    async with Redis.from_url(settings.redis, protocol=2) as client:
        await client.delete(*await states(settings))


@pytest.mark.long
async def test_agents_go_on_as_if_nothing_had_been(settings: Settings) -> None:
    first = [target(room) for room in ROOMS] + [turn(room, "1") for room in ROOMS]
    second = [turn(room, "2", "-1") for room in ROOMS]
    async with collecting(settings) as collected, producing(settings) as producer:
        async with running(settings):
            await producer.records(first)
            await drained(settings)
        async with member(settings):
            status, errors = await rebuild(settings)
            assert status == 1
            assert re.search(r"^volteface rebuild: run live has \d agents: end all", errors, re.MULTILINE)
        before = await states(settings)
        await emptied(settings)
        said = f"run live: {len(ROOMS)} conversations rebuilt, 0 left as they are, 0 windows without text"
        assert await rebuild(settings, "--dry-run") == (0, f"{said}\n")
        assert await states(settings) == {}
        assert await rebuild(settings, "--run", "live") == (0, f"{said}\n")
        assert await states(settings) == before
        async with running(settings):
            await producer.records(second)
            await drained(settings)
            await collected.until(lambda seen: len(seen.events("flips")) == len(ROOMS), "the flips")
        await collected.until(lambda seen: len(seen.arrivals()) == len(first + second), "the journal")
        await collected.rest()
    assert gapless(collected.events())
    assert len(collected.records["journal"]) == len(first) + len(second)


@pytest.mark.parametrize(
    ("changed", "arguments", "status", "words"),
    [
        ({"VOLTEFACE_BROKER": "kafka://127.0.0.1:1"}, [], 1, "set VOLTEFACE_BROKER"),
        ({}, ["--run", "Not A Name"], 2, "VOLTEFACE_RUN"),
    ],
)
async def test_what_a_person_can_mend(
    changed: dict[str, str], arguments: list[str], status: int, words: str
) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("VOLTEFACE_")}
    got, errors = await command({**bare, **changed}, "-m", "stream.cli.main", "rebuild", *arguments)
    lines = [line for line in errors.splitlines() if line.startswith("volteface")]
    assert (got, len(lines)) == (status, 1), errors
    assert words in lines[0]
    assert "Traceback" not in errors


def test_conversations_that_failed_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async def half(*_: object, **__: object) -> Report:
        return Report(rebuilt=3, failed=2)

    monkeypatch.setattr(rebuilding, "run", half)
    monkeypatch.setattr(logs, "configure", lambda loaded: None)
    app = typer.Typer()
    app.command()(command_of_rebuild)
    done = CliRunner().invoke(app, [])
    assert done.exit_code == 1
    assert "3 conversations rebuilt" in done.output
    assert "volteface rebuild: 2 conversations failed: see rebuild.failed in the log" in done.output


@pytest.mark.long
async def test_without_redis_and_without_such_a_run_it_says_so(settings: Settings) -> None:
    await topics.ensure(settings)
    async with producing(settings) as producer, running(settings):
        await producer.records([target("room")])
        await drained(settings)
    async with member(settings):
        pass
    status, errors = await rebuild(msgspec.structs.replace(settings, redis="redis://127.0.0.1:1/0"))
    assert (status, "volteface rebuild: Redis: ConnectionError" in errors) == (1, True), errors
    status, errors = await rebuild(settings, "--run", "never")
    assert (status, "volteface rebuild: run never has no topic" in errors) == (1, True), errors
    assert "Traceback" not in errors
