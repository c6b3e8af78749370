"""`volteface runs` as a process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stream import topics
from stream.embedded import EmbeddedBroker
from stream.settings import Settings
from tests.end_to_end.harness import environment

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def settings(tansu_broker: EmbeddedBroker, redis_url: str, topic_prefix: str) -> Settings:
    made = Settings(
        broker=tansu_broker.url, redis=redis_url, topic_prefix=topic_prefix, run="again", partitions=1
    )
    await topics.ensure(made)
    return made


def runs(settings: Settings, *arguments: str, answer: str = "") -> subprocess.CompletedProcess[str]:
    given = {**environment(settings), "VOLTEFACE_LOG_LEVEL": "error"}
    given.pop("VOLTEFACE_RUN", None)
    return subprocess.run(
        [sys.executable, "-m", "stream.cli.main", "runs", *arguments],
        cwd=ROOT, env=given, input=answer, check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_a_run_is_listed_and_dropped_when_that_is_meant(settings: Settings) -> None:
    assert "again" in runs(settings, "list").stdout
    kept = runs(settings, "drop", "again", answer="n\n")
    assert kept.returncode == 1
    [row] = map(json.loads, runs(settings, "list", "--json").stdout.splitlines())
    assert row == {"run": "again", "records": 0, "behind": 0, "agents": 0}
    dropped = runs(settings, "drop", "again", "--yes")
    assert dropped.returncode == 0
    assert dropped.stderr.endswith("run again: 7 topics and 0 keys deleted\n")
    assert runs(settings, "list", "--json").stdout == ""


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("live", 1, "live is never dropped"),
        ("nobody", 1, "there is no run nobody"),
        ("A b", 2, "VOLTEFACE_RUN"),
    ],
)
def test_what_cannot_be_dropped_is_one_line(settings: Settings, name: str, status: int, said: str) -> None:
    told = runs(settings, "drop", name, "--yes")
    assert told.returncode == status
    assert said in told.stderr
    assert len(told.stderr.splitlines()) == 1


def test_without_a_broker_it_is_one_line() -> None:
    told = runs(Settings(broker="kafka://127.0.0.1:1"), "list")
    assert told.returncode == 1
    assert told.stderr.startswith("volteface runs list: ")
