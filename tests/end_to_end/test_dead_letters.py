"""An operator and the dead letters of a running agent: seen, mended, sent again, and none is left."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream.settings import Settings
from tests.end_to_end.harness import (
    LEFT_OPEN,
    ROOT,
    Collected,
    collecting,
    drained,
    environment,
    key,
    producing,
    running,
    target,
    turn,
)
from tests.stream.fakes import CountingReader
from tracker import records

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.long]

ROOM = "room"
# The program without the commands that it does not need: they take most of its start.
ALONE = "from stream.cli.dead_letters import app; app()"


async def volteface(settings: Settings, *arguments: object) -> tuple[int, str, str]:
    """Status, output and errors of `volteface dead-letters`."""
    command = [sys.executable, "-c", ALONE, *map(str, arguments)]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=ROOT, env=environment(settings), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


async def listed(settings: Settings, *arguments: str) -> list[dict[str, Any]]:
    status, output, errors = await volteface(settings, "list", "--json", *arguments)
    assert status == 0, errors
    return [msgspec.json.decode(line) for line in output.splitlines()]


async def test_what_was_refused_is_mended_and_applied(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "turn.json"
    async with (
        running(settings),
        producing(settings) as producer,
        collecting(settings) as collected,
    ):
        await producer.records([target(ROOM), turn(ROOM, "first"), turn(ROOM, "bo-1", holder="bo")])
        await producer.raw(b"default/elsewhere", records.encode(turn(ROOM, "astray", "-1")))
        await producer.raw(key(ROOM), b'{"turn": "mended", ')
        await collected.until(lambda seen: len(seen.dead_letters) == 2, "two dead letters")

        found = {row["reason"]: row for row in await listed(settings)}
        assert set(found) == {"wrong_key", "not_json"}
        assert found["wrong_key"]["conversation"] == "elsewhere"
        mended, astray = found["not_json"]["id"], found["wrong_key"]["id"]

        edited = records.encode(turn(ROOM, "mended", "-1", holder="bo"))
        await asyncio.to_thread(file.write_bytes, edited + b"\n")
        status, _, errors = await volteface(settings, "retry", mended, "--edit", file)
        assert status == 0, errors
        await collected.until(lambda seen: seen.applied(ROOM, "create/mended/0"), "the mended turn")
        status, _, errors = await volteface(settings, "retry", astray, "--fix-key")
        assert status == 0, errors
        await collected.until(lambda seen: seen.applied(ROOM, "create/astray/0"), "the turn that went astray")

        await drained(settings)
        assert await listed(settings) == []
        await collected.rest()
        assert len(collected.dead_letters) == 2
    assert flips(collected) == dict.fromkeys(("mended", "astray"), ("support", "oppose"))


async def test_what_is_refused_again_is_a_new_letter_that_names_the_old_one(settings: Settings) -> None:
    async with (
        running(settings),
        producing(settings) as producer,
        collecting(settings) as collected,
    ):
        place = await producer.raw(key(ROOM), b"nonsense", [("trace", b"1")])
        await collected.until(lambda seen: place in seen.dead_letters, "a dead letter")
        [first] = await listed(settings)
        status, _, errors = await volteface(settings, "retry", "--all", "--reason", "not_json")
        assert (status, "1 retried" in errors) == (0, True), errors
        await collected.until(lambda seen: len(seen.dead_letters) == 2, "the second dead letter")
        [second] = await listed(settings)
        assert (second["retry_of"], second["got"]) == (first["id"], first["got"])
        [(headers, letter)] = [found for at, found in collected.dead_letters.items() if at != place]
        assert (letter.value, headers["trace"]) == (b"nonsense", b"1")


async def test_a_turn_that_poisoned_its_reader_is_applied_at_its_place(settings: Settings) -> None:
    reader = CountingReader(rejects=frozenset({"poison"}))
    async with (
        running(settings, reader=reader),
        producing(settings) as producer,
        collecting(settings) as collected,
    ):
        await producer.records([target(ROOM), turn(ROOM, "first"), turn(ROOM, "poison", "-1")])
        await collected.until(lambda seen: seen.dead_letters, "its dead letter")
        await producer.records([turn(ROOM, "last", "+1")])
        await collected.until(lambda seen: seen.applied(ROOM, "create/last/0"), "the next turn")
        [row] = await listed(settings)
        assert (row["reason"], flips(collected)) == ("failed", {})

        reader.rejects = frozenset()
        status, _, errors = await volteface(settings, "retry", row["id"])
        assert status == 0, errors
        await collected.until(lambda seen: seen.applied(ROOM, "create/poison/0"), "the poisoned turn")
        await collected.until(lambda seen: len(flips(seen)) == 2, "both flips")
    applied = collected.applied(ROOM, "create/poison/0")
    assert applied is not None
    assert applied["entry"]["marks"] == ["late"]
    assert flips(collected) == {"poison": ("support", "oppose"), "last": ("oppose", "support")}


def flips(seen: Collected) -> dict[str, tuple[str, str]]:
    """From what to what, by turn."""
    found = [event["data"] for event in seen.events("flips").values()]
    return {data["turn"]: (data["from"], data["to"]) for data in found}
