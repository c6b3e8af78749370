import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from stream.cli import __main__ as program

ROOT = Path(__file__).parents[3]


def volteface(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("VOLTEFACE_")}
    return subprocess.run(
        [sys.executable, "-m", "stream.cli.main", *arguments],
        cwd=ROOT, input="", capture_output=True, text=True, timeout=120, check=False,
        env={**bare, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"VOLTEFACE_READER": "oracle"}, "VOLTEFACE_READER"),
        ({"VOLTEFACE_MODEL": "/nowhere"}, "/nowhere holds no model"),
        ({"VOLTEFACE_ADAPTER": "/nowhere"}, "name a folder made by volteface train encoder"),
        (
            {"VOLTEFACE_READER": "generative", "VOLTEFACE_ADAPTER": "/nowhere"},
            "/nowhere has no adapter_config.json",
        ),
    ],
    ids=["setting", "model", "adapter", "generative adapter"],
)
def test_what_a_person_can_mend_is_one_line(environment: dict[str, str], said: str) -> None:
    done = volteface("track", "-", **environment)
    lines = [line for line in done.stderr.splitlines() if line.startswith("volteface: ")]
    assert done.returncode == 2
    assert said in lines[-1]
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = volteface("worker", "--port", str(taken.getsockname()[1]), VOLTEFACE_READER="rule")
    assert done.returncode == 1
    assert "already in use" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments", [["--data", __file__], ["--data", "/dev/null/here"]], ids=["a file", "below a file"]
)
def test_a_data_folder_that_cannot_be_is_said(arguments: list[str]) -> None:
    done = volteface("up", *arguments, VOLTEFACE_READER="rule")
    assert done.returncode == 1
    assert done.stderr.startswith("volteface up: ")
    assert "Traceback" not in done.stderr


PORTS = ("--port", "0", "--worker-port")


def test_a_workers_port_that_is_taken_ends_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = volteface("up", "--data", str(tmp_path), *PORTS, port, VOLTEFACE_READER="rule")
    assert done.returncode == 1
    assert "already in use" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["up", "--worker-port", "65536"], ["up", "--redis-port", "0"], ["replay", __file__, "--rate", "inf"]],
)
def test_a_number_that_cannot_be_is_refused_before_anything_starts(arguments: list[str]) -> None:
    done = volteface(*arguments)
    assert done.returncode == 2
    assert "Invalid value" in done.stderr


TURN = '{"conversation": "c", "turn": "1", "holder": "h", "text": "+1", "sent_at": "2026-11-30T00:00:00Z"}\n'


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_the_caller_closed_do_no_harm(closed: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m stream.cli track - {closed}"],
        cwd=ROOT, input=TURN, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "VOLTEFACE_READER": "rule"},
    )  # fmt: skip
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_ctrl_c_while_the_parts_are_imported_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stream.cli.main.main", interrupted)
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == program.INTERRUPTED
