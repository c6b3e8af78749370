"""`volteface shadow` as a process beside a live run."""

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from stream.embedded import EmbeddedRedis
from stream.settings import Settings
from tests.end_to_end.harness import (
    LEFT_OPEN,
    collecting,
    ended,
    environment,
    producing,
    settings_of,
    target,
    turn,
)

pytestmark = pytest.mark.filterwarnings(LEFT_OPEN)

ROOT = Path(__file__).parents[3]
ALONE = "import typer; from stream.cli.shadow import shadow; typer.run(shadow)"


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """One Redis: that its versions agree is tested with the store."""
    with EmbeddedRedis() as server:
        yield server.url


def begun(settings: Settings, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", ALONE, *arguments],
        cwd=ROOT, env=environment(settings), stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.long
async def test_it_copies_and_folds_until_it_is_stopped(
    broker: str, redis_url: str, topic_prefix: str, request: pytest.FixtureRequest
) -> None:
    idempotence = "kafka" in request.node.name
    live = settings_of(f"kafka://{broker}", redis_url, topic_prefix, idempotence=idempotence)
    named = msgspec.structs.replace(live, run="candidate")
    async with producing(live) as producer, collecting(named) as shaded:
        process = begun(live, "candidate")
        try:
            await producer.records([target("a"), turn("a", "1"), turn("a", "2", "-1")])
            await shaded.until(lambda found: found.events("flips"), "the flip")
            process.send_signal(signal.SIGTERM)
            assert await ended(process, 20) == 0
        finally:
            process.kill()
            _, errors = process.communicate(timeout=10)
    assert re.search(b"^run candidate: 3 records of run live copied$", errors, re.MULTILINE), errors
    assert b"Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["live"], 2, "live is nobody's shadow"),
        (["candidate"], 1, "set VOLTEFACE_BROKER"),
    ],
)
async def test_what_a_person_can_mend(arguments: list[str], status: int, words: str) -> None:
    process = begun(Settings(broker="kafka://127.0.0.1:1", reader="rule"), *arguments)
    _, errors = await asyncio.to_thread(process.communicate, None, 60)
    said = errors.decode()
    assert (process.returncode, words in said, "Traceback" in said) == (status, True, False), said
