"""`volteface replay` as a process, against both brokers and Redis."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream.embedded import EmbeddedRedis
from stream.settings import Settings
from tests.end_to_end.harness import Collected, collecting, environment, gapless
from tests.stream.fakes import target, turn
from tracker import records

ROOT = Path(__file__).parents[3]
CHAT = ROOT / "tests" / "stream" / "platforms" / "samples" / "whatsapp" / "android_de.txt"
TURNS = 400


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """One Redis: that its versions agree is tested with the store."""
    with EmbeddedRedis() as server:
        yield server.url


@pytest.fixture
def settings(broker: str, redis_url: str, topic_prefix: str, request: pytest.FixtureRequest) -> Settings:
    return Settings(
        broker=f"kafka://{broker}", redis=redis_url, topic_prefix=topic_prefix, run="again", reader="rule",
        partitions=2, rebalance_seconds=2.0, batch_seconds=0.5,
        broker_idempotence="kafka" in request.node.name,
    )  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "talk.jsonl"
    turns = [turn(str(number), "-1" if number % 2 else "+1", seconds=number) for number in range(TURNS)]
    path.write_bytes(b"\n".join(records.encode(record) for record in [target(), *turns]) + b"\nnonsense\n")
    return path


def replay(settings: Settings, *arguments: object) -> subprocess.Popen[bytes]:
    given = {**environment(settings), "VOLTEFACE_LOG_LEVEL": "error"}
    given.pop("VOLTEFACE_RUN", None)
    return subprocess.Popen(
        [sys.executable, "-m", "stream.cli.main", "replay", *map(str, arguments)],
        cwd=ROOT, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


async def said(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, errors = await asyncio.to_thread(process.communicate, None, 60)
    return process.returncode, errors.decode()


async def check(collected: Collected) -> None:
    await collected.until(lambda seen: len(seen.events()) == TURNS, "an event a turn")
    assert gapless(collected.events())
    assert len(collected.events("flips")) == TURNS - 1
    assert {event["data"]["run"] for event in collected.events().values()} == {"again"}


@pytest.mark.long
async def test_a_file_is_folded_in_a_run_of_its_own_and_only_once(settings: Settings, file: Path) -> None:
    async with collecting(settings) as collected:
        status, errors = await said(replay(settings, file, "--run", "again"))
        assert (status, f"run again: {TURNS + 1} records sent, 1 lines refused" in errors) == (0, True), (
            errors
        )
        await check(collected)
        status, errors = await said(replay(settings, file, "--run", "again"))
        assert "0 records sent" in errors, errors
        await collected.collect(300)
        assert len(collected.values["journal"]) == TURNS + 1


@pytest.mark.long
async def test_stopped_it_goes_on_where_it_was_left(settings: Settings, file: Path) -> None:
    async with collecting(settings) as collected:
        process = replay(settings, file, "--run", "again", "--rate", 250)
        await collected.until(lambda seen: len(seen.arrivals()) > 20, "a beginning")
        process.terminate()
        status, errors = await said(process)
        assert (status, "goes on from there" in errors) == (1, True), errors
        status, errors = await said(replay(settings, file, "--run", "again"))
        assert status == 0, errors
        await check(collected)


async def test_a_platforms_file_is_replayed(settings: Settings) -> None:
    status, errors = await said(replay(settings, CHAT, "--no-agent", "--from", "whatsapp", "--zone", "UTC"))
    assert (status, "2 records sent, 1 lines refused" in errors) == (0, True), errors


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--run", "live"], 2, "never enters the live run"),
        (["--run", "Not A Name"], 2, "VOLTEFACE_RUN"),
        (["--from", "nonsense"], 1, "no form 'nonsense'"),
        (["--no-agent", "--strict"], 1, "not_json"),
    ],
)
async def test_what_a_person_can_mend(
    settings: Settings, file: Path, arguments: list[str], status: int, words: str
) -> None:
    if "--strict" in arguments:
        await asyncio.to_thread(file.write_bytes, b"nonsense\n")
        words = f"{file}:1: value"
    got, errors = await said(replay(settings, file, *arguments))
    assert got == status, errors
    assert words in " ".join(errors.split()), errors
    assert "Traceback" not in errors


async def test_without_a_broker_it_says_so(topic_prefix: str, file: Path) -> None:
    settings = Settings(broker="kafka://127.0.0.1:1", topic_prefix=topic_prefix, reader="rule")
    status, errors = await said(replay(settings, file))
    assert status == 1
    assert "set VOLTEFACE_BROKER" in errors
