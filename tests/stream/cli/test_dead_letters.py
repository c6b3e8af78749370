"""`volteface dead-letters` against both brokers; as a process, where that makes a difference."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from stream import topics
from stream.cli import dead_letters, letter_display
from stream.dead_letters import MAX_VALUE_BYTES, dead_letter
from stream.letters import Letter, Status, Verdict, read
from stream.sender import Sender, ToSend
from stream.settings import Settings
from tests.end_to_end.harness import environment
from tests.stream.fakes import turn
from tests.stream.test_letters import KEY, SOURCE, letter, message
from tracker import records
from tracker.records import Reason, Refused

ROOT = Path(__file__).parents[3]
ALONE = "from stream.cli.dead_letters import app; app()"
NOT_JSON = Refused(Reason.NOT_JSON, "value", "[bold]x[/bold]", "send one JSON object")
LATE = Refused(Reason.TOO_LATE, "sent_at", "\x1b[2J30 days old", "send it sooner")


@pytest.fixture
async def made(broker: str, topic_prefix: str) -> Settings:
    made = Settings(
        broker=f"kafka://{broker}", topic_prefix=topic_prefix, partitions=2, broker_idempotence=False
    )
    await topics.ensure(made)
    return made


async def put(settings: Settings, *letters: ToSend) -> None:
    sender = Sender(settings)
    await sender.send_with_headers(letters)
    await sender.close()


def source(settings: Settings, offset: int) -> str:
    return f"{topics.topic(settings, 'turns')}/0/{offset}"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs stay as the tests have them; who works is ada."""
    monkeypatch.setattr("stream.logs.configure", lambda settings: None)
    monkeypatch.setattr("logging.Logger.setLevel", lambda logger, level: None)
    monkeypatch.setenv("LOGNAME", "ada")


async def volteface(settings: Settings, *arguments: object, said: str = "") -> tuple[int, bytes, str]:
    """Status, output and errors."""
    given = {name: value for name, value in environment(settings).items() if name.startswith("VOLTEFACE_")}
    words = [str(one) for one in arguments]
    done = await asyncio.to_thread(
        CliRunner().invoke, dead_letters.app, words, input=said, env={**given, "COLUMNS": "60"}
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout_bytes, done.stderr


async def process(settings: Settings, *command: object) -> tuple[int, bytes, str]:
    """The same of a process."""
    done = await asyncio.to_thread(
        subprocess.run, [*map(str, command)], cwd=ROOT, env=environment(settings), capture_output=True,
        timeout=100, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr.decode()


async def listed(settings: Settings, *arguments: object) -> list[dict[str, Any]]:
    status, output, errors = await volteface(settings, "list", "--json", *arguments)
    assert status == 0, errors
    return [json.loads(line) for line in output.splitlines()]


async def test_an_operator_lists_shows_retries_and_drops(made: Settings) -> None:
    ids = [source(made, at) for at in range(3)]
    refusals = (NOT_JSON, LATE, LATE)
    await put(made, *(dead_letter(KEY, b"private\xff", (), *of) for of in zip(ids, refusals, strict=True)))

    status, output, errors = await volteface(made, "list")
    assert (status, errors) == (0, "")
    assert all(one in output.decode() for one in (*ids, "not_json", "[bold]x[/bold]", "default/a"))
    assert b"private" not in output
    assert b"\x1b" not in output
    assert [row["id"] for row in await listed(made, "--reason", "too_late")] == ids[1:]

    status, output, _ = await volteface(made, "show", ids[0])
    assert (status, "private\\xff" in output.decode(), "send one JSON object" in output.decode()) == (
        0,
        True,
        True,
    )
    assert (await volteface(made, "show", ids[0], "--raw"))[1] == b"private\xff"

    status, _, errors = await volteface(made, "retry", ids[0], "t/0/7", "\x1b[2J", "--by", "eve")
    assert (status, errors.count("\n"), "1 retried" in errors) == (1, 2, True)
    assert "t/0/7" in errors
    assert "\x1b" not in errors
    [row] = await listed(made, "--status", "retried")
    assert (row["id"], row["by"]) == (ids[0], "eve")

    status, _, errors = await volteface(made, "drop", "--all", said="n\n")
    assert (status, "Drop 2 open" in errors) == (1, True)
    assert len(await listed(made)) == 2
    assert (await volteface(made, "drop", "--all", said="y\n"))[0] == 0
    assert await listed(made) == []
    assert {row["by"] for row in await listed(made, "--status", "dropped")} == {"ada"}


async def test_only_the_newest_are_listed_where_more_are_there(made: Settings) -> None:
    await put(made, *(dead_letter(KEY, b"v", (), source(made, at), NOT_JSON) for at in range(5)))
    status, output, errors = await volteface(made, "list", "--json", "--limit", 2)
    assert [json.loads(line)["id"] for line in output.splitlines()] == [source(made, 3), source(made, 4)]
    assert (status, "--limit" in errors) == (0, True)


async def test_a_file_that_is_no_record_is_not_sent(made: Settings, tmp_path: Path) -> None:
    file, one = tmp_path / "turn.json", source(made, 1)
    await put(made, dead_letter(b"other", b"v", (), one, NOT_JSON))
    for content, words in ((b"{", "not_json"), (records.encode(turn("m")), "wrong_key")):
        await asyncio.to_thread(file.write_bytes, content)
        status, _, errors = await volteface(made, "retry", one, "--edit", file)
        assert (status, words in errors, f"{one} is left as it is" in errors) == (1, True, True), errors
    assert len(await listed(made)) == 1
    status, _, errors = await volteface(made, "retry", one, "--edit", file, "--fix-key")
    assert status == 0, errors


async def test_a_run_that_is_not_there_is_one_line(made: Settings) -> None:
    status, output, errors = await volteface(made, "list", "--run", "nowhere")
    assert (status, output, errors.count("\n")) == (1, b"", 1)
    assert f"{made.topic_prefix}.nowhere.dead-letters" in errors


async def test_whoever_reads_may_stop(made: Settings) -> None:
    await put(made, *(dead_letter(KEY, b"x" * 300_000, (), source(made, at), NOT_JSON) for at in range(2)))
    command = f'{sys.executable} -c "{ALONE}" show {source(made, 1)} --raw | head -c 5'
    assert await process(made, "bash", "-c", command) == (0, b"xxxxx", "")


async def test_without_a_broker_it_is_one_line(topic_prefix: str) -> None:
    nowhere = Settings(broker="kafka://127.0.0.1:1", topic_prefix=topic_prefix)
    for arguments in (["list"], ["show", SOURCE], ["retry", "--all"], ["drop", "--all"]):
        status, output, errors = await volteface(nowhere, *arguments)
        assert (status, output, "set VOLTEFACE_BROKER" in errors) == (1, b"", True), errors
    status, output, errors = await process(nowhere, sys.executable, "-c", ALONE, "list")
    assert (status, output, errors.count("\n")) == (1, b"", 1), errors


async def test_it_is_one_of_the_programs_commands() -> None:
    program = (sys.executable, "-m", "stream.cli.main", "dead-letters", "--help")
    status, output, _ = await process(Settings(), *program)
    assert (status, *(name in output for name in (b"list", b"show", b"retry", b"drop"))) == (0, *[True] * 4)


@pytest.mark.parametrize(
    ("ids", "every", "reason"), [(None, False, None), (["t/0/1"], True, None), (["t/0/1"], False, "null")]
)
def test_letters_are_named_or_all_are_meant(ids: list[str] | None, every: bool, reason: str | None) -> None:
    with pytest.raises(typer.BadParameter):
        dead_letters._asked(ids, every, reason)


@pytest.mark.parametrize("failure", [KeyError, OSError])
def test_a_user_without_a_name_has_a_number(
    failure: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nameless() -> str:
        raise failure

    monkeypatch.setattr("getpass.getuser", nameless)
    assert dead_letters._user().startswith("uid-")


def shown(of: Letter, verdict: Verdict | None = None) -> str:
    return "\n".join(letter_display.lines(of, verdict))


def test_a_letter_is_shown_with_all_that_it_brought() -> None:
    text = shown(
        letter(headers=[("trace", b"1\n\xff\x1b[2J")]), Verdict(SOURCE, Status.DROPPED, "eve", "today")
    )
    assert f"id      {SOURCE}\n" in text
    assert "status  dropped by eve at today\n" in text
    assert "remedy  send one JSON object\n" in text
    assert "  trace: 1\\n\\\\xff\\x1b[2J\n" in text or "  trace: 1\\n\\xff\\x1b[2J\n" in text
    assert text.endswith("record  1 bytes\nv")


@pytest.mark.parametrize(
    ("value", "ends"),
    [
        (None, "record  null"),
        (b"", "record  0 bytes\n"),
        ("día\n\x07".encode(), "record  6 bytes\ndía\n\\x07"),
        (b"\xff\xfe{", "record  3 bytes\n\\xff\\xfe{"),
        (b"x" * 4001, "x\n... 1 more characters; --raw writes all bytes"),
    ],
)
def test_a_record_is_shown_as_text_where_it_is_text(value: bytes | None, ends: str) -> None:
    assert shown(letter(value=value)).endswith(ends)


def test_an_id_that_is_refused_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    dead_letters._refused("turns/0/\x1b[2J", "it is gone")
    assert "\x1b" not in capsys.readouterr().err


def test_a_record_that_was_cut_says_so() -> None:
    text = shown(letter(value=b"v" * 600_000))
    assert f"cut: {MAX_VALUE_BYTES} of 600000 bytes" in text
    no_key = read(message(dead_letter(None, b"v", (), SOURCE, NOT_JSON)))
    assert isinstance(no_key, Letter)
    assert "key     null" in shown(no_key)
