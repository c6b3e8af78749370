import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.stream.fakes import target, turn
from tracker import records
from tracker.records import Record

ROOT = Path(__file__).parents[3]
TALK: list[Record] = [target(), turn("1"), turn("2", "hm"), turn("3", "-1")]


def track(
    *arguments: str, given: bytes = b"", cwd: Path = ROOT, config: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VOLTEFACE_")}
    return subprocess.run(
        [sys.executable, "-m", "stream.cli.main", "track", *arguments],
        cwd=cwd, input=given, capture_output=True, timeout=60, check=False,
        env={**environment, "PYTHONPATH": str(ROOT)}
        | ({"VOLTEFACE_CONFIG": str(config)} if config else {"VOLTEFACE_READER": "rule"}),
    )  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(b"\n".join(map(records.encode, TALK)))
    return path


def events(done: subprocess.CompletedProcess[bytes]) -> list[tuple[str, str, str]]:
    decoded = [json.loads(line) for line in done.stdout.splitlines()]
    return [(event["data"]["turn"], event["data"]["from"], event["data"]["to"]) for event in decoded]


def test_a_file_in_events_out(file: Path) -> None:
    done = track(str(file))
    assert events(done) == [("1", "unknown", "support"), ("3", "support", "oppose")]
    assert (done.returncode, done.stderr.strip()) == (0, b"")


def test_all_gives_an_event_for_every_turn(file: Path) -> None:
    assert events(track(str(file), "--all"))[1] == ("2", "support", "support")


ENGLISH = """
reader = "rule"
[[readers]]
languages = ["en"]
reader = "rule"
threads = 1
"""


def test_language_and_fallback_stand_in_the_events(tmp_path: Path, file: Path) -> None:
    talk = [target(), turn("1", "+1 the water board says so"), turn("2", "-1 我一直都觉得应该取消，大家说呢")]
    file.write_bytes(b"\n".join(map(records.encode, [*talk, turn("3", "+1 我改主意了", language="yue-HK")])))
    config = tmp_path / "volteface.toml"
    config.write_text(ENGLISH)
    done = track(str(file), config=config)
    sent = [json.loads(line)["data"] for line in done.stdout.splitlines()]
    assert [(one["model"]["language"], one["marks"]) for one in sent] == [
        ("en", []),
        ("zh", ["fallback"]),
        ("yue-HK", ["fallback"]),
    ], done.stderr
    config.write_text(ENGLISH + '[[readers]]\nlanguages = ["*"]')
    declared = [json.loads(line)["data"] for line in track(str(file), config=config).stdout.splitlines()]
    assert [one["marks"] for one in declared] == [[], [], []]


def test_standard_input_and_propositions() -> None:
    lines = b"\n".join(records.encode(record) for record in TALK[1:])
    undeclared = track("-", given=lines)
    assert (events(undeclared), undeclared.returncode) == ([], 0)
    assert b"--proposition" in undeclared.stderr
    assert len(events(track("-", "--proposition", "whether x", given=lines))) == 2


def test_a_refused_line_is_said_with_file_and_line(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\n{}\n" + records.encode(turn("4", "+1")))
    done = track(str(file))
    assert done.returncode == 0
    assert f"{file}:5: ".encode() in done.stderr
    assert len(events(done)) == 3
    strict = track(str(file), "--strict")
    assert strict.returncode == 1
    assert f"{file}:5: ".encode() in strict.stderr


def test_a_file_of_another_form_is_no_success(file: Path) -> None:
    done = track(str(file), "--from", "benchmark")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"--from" in done.stderr


def test_what_stands_before_a_break_in_a_packed_file_is_read(tmp_path: Path) -> None:
    turns = [turn(str(number), "+1" if number % 2 else "-1") for number in range(40)]
    packed = tmp_path / "talk.jsonl.gz"
    whole = gzip.compress(b"\n".join(map(records.encode, [target(), *turns])) + b"\n")
    packed.write_bytes(whole[:-8])  # without its checksum: every line is there, and then it breaks off
    done = track(str(packed))
    assert done.returncode == 1
    assert b"broken gzip file" in done.stderr
    assert len(events(done)) == 40


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["missing.jsonl"], 1), ([".", "--from", "native"], 1), (["-", *["--proposition", "x"] * 4], 1)],
    ids=["no file", "a folder", "four propositions"],
)
def test_what_a_person_can_mend_is_a_line_and_no_traceback(arguments: list[str], status: int) -> None:
    done = track(*arguments)
    assert done.returncode == status
    assert done.stderr.startswith(b"volteface track: ")
    assert b"Traceback" not in done.stderr


def test_whoever_reads_may_have_read_enough(file: Path) -> None:
    file.write_bytes(b"\n".join(records.encode(turn(str(n), "+1" if n % 2 else "-1")) for n in range(4000)))
    command = f"{sys.executable} -m stream.cli.main track {file} --proposition x | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=ROOT, capture_output=True, timeout=60, check=False,
        env={**os.environ, "VOLTEFACE_READER": "rule"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(done.stdout.splitlines()) == 1


def test_ctrl_c_ends_a_wait_for_standard_input() -> None:
    """As from a terminal: nobody types, and nobody closes the stream."""
    process = subprocess.Popen(
        [sys.executable, "-m", "stream.cli", "track", "-"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "VOLTEFACE_READER": "rule"},
    )  # fmt: skip
    with process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        for number in range(64):  # a batch: its events show that the reader is up and waits for the next
            process.stdin.write(
                records.encode(TALK[number] if number < len(TALK) else turn(f"x{number}")) + b"\n"
            )
        process.stdin.flush()
        process.stdout.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert b"Traceback" not in process.stderr.read()
