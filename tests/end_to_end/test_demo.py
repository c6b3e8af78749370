"""The README's main job: the demo ends by itself, every turn read, the fourth room's flips on the screen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ROOMS = {"en": 10, "zh": 8, "es": 9, "rule": 11}


@pytest.mark.timeout(600)
def test_the_demo_ends_by_itself_with_every_turn_read() -> None:
    command = [sys.executable, "-m", "stream.cli.main", "demo", "--pace", "0"]
    environment = os.environ | {"COLUMNS": "120"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=590, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "untrained" not in done.stdout
    assert _turns_read(done.stdout) == ROOMS
    read, _, fourth = done.stdout.partition("The fourth room")
    assert "FLIP" in read  # by the reader that ships, which nobody tuned to these rooms
    flips = [
        line.partition("FLIP")[2].split(",")[0].strip() for line in fourth.splitlines() if "FLIP" in line
    ]
    assert flips == ["Milan: oppose -> support", "Ada: support -> oppose", "Jun: neutral -> support"]


def _turns_read(screen: str) -> dict[str, int]:
    """The table at the end: room, turns read, ..."""
    rows = (line.split("│") for line in screen.splitlines() if line.startswith("│"))
    return {row[1].strip(): int(row[2]) for row in rows}
