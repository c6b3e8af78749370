"""`volteface alerts`, as a process where that makes a difference."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stream.alerts import role
from stream.cli import alerts
from stream.embedded import EmbeddedRedis
from stream.settings import Settings
from tests.end_to_end.harness import agent_process, ended
from tests.stream.alerts.harness import collecting, produce
from tests.tracker.alert_builders import Room
from tracker import events
from tracker.events import Event
from tracker.stances import Stance

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "deploy" / "alerts" / "rules.toml"
ALONE = "from stream.cli.alerts import app; app({arguments!r})"
RULES = """
[[rules]]
name = "against"
kind = "flip"
to = ["oppose"]
[[rules]]
name = "never"
kind = "burst"
count = 50
within = "1m"
"""


@pytest.fixture(scope="module")
def redis() -> Iterator[EmbeddedRedis]:
    """One Redis: that its versions agree is tested with the store."""
    with EmbeddedRedis() as server:
        yield server


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.toml"
    path.write_text(RULES, encoding="utf-8")
    return path


@pytest.fixture
def talk() -> list[Event]:
    room = Room()
    flip = room.flip("u-1")
    return [room.persisted(), flip, room.flip("u-2", Stance.NEUTRAL), room.retracted(flip)]


def written(path: Path, found: list[Event], *more: bytes) -> str:
    path.write_bytes(b"".join(line + b"\n" for line in [*map(events.encode, found), *more]))
    return str(path)


def ran(*arguments: str, **environment: str) -> tuple[int, str, str]:
    clean = {name: None for name in os.environ if name.startswith("VOLTEFACE_")}
    result = CliRunner().invoke(alerts.app, [*arguments], env={**clean, **environment})
    return result.exit_code, result.stdout, result.stderr


def test_a_dry_run_prints_alerts_and_says_what_never_fired(
    tmp_path: Path, rules: Path, talk: list[Event]
) -> None:
    file = written(tmp_path / "events.jsonl", talk, b"", b'{"type": 1}', b"not json")
    status, out, err = ran("test", file, "--rules", str(rules))
    raised, withdrawn = map(json.loads, out.splitlines())
    assert (raised["type"], raised["data"]["events"]) == ("volteface.alert.raised", [talk[1].id])
    assert (withdrawn["type"], withdrawn["data"]["withdraws"]) == ("volteface.alert.withdrawn", raised["id"])
    bad, worse, *summary = err.splitlines()
    assert bad.startswith(f"{file}:6: ")
    assert worse.startswith(f"{file}:7: value: ")
    assert summary == [
        "4 events, 2 lines refused; 1 alerts, 1 of them withdrawn",
        "  against: 1",
        "  never: never fired",
    ]
    assert status == 0


def test_a_dry_run_reads_stdin_as_track_prints_it(rules: Path) -> None:
    talk = "\n".join(
        json.dumps({"conversation": "r", "turn": str(at), "holder": "a", "text": text,
                    "sent_at": f"2026-01-01T00:00:0{at}Z"})
        for at, text in enumerate(["+1", "-1", "+1"])
    )  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VOLTEFACE_")}
    environment |= {"VOLTEFACE_READER": "rule"}
    tracked = subprocess.run(
        [sys.executable, "-m", "stream.cli.main", "track", "-", "--proposition", "whether x"],
        cwd=ROOT, input=talk, env=environment, capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", ALONE.format(arguments=["test", "-", "--rules", str(SHIPPED)])],
        cwd=ROOT, input=tracked.stdout, env=environment,
        capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    found = [json.loads(line)["data"]["rule"] for line in done.stdout.splitlines()]
    assert found == ["turned-against", "wavering"]
    assert "burst: never fired" in done.stderr


def test_a_dry_run_says_where_turns_were_not_told(tmp_path: Path, talk: list[Event]) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('[[rules]]\nname = "a"\nkind = "flip_back"\nturns = 3\n', encoding="utf-8")
    assert "track --all" not in ran("test", written(tmp_path / "all", talk), "--rules", str(path))[2]
    assert "track --all" in ran("test", written(tmp_path / "few", talk[1:]), "--rules", str(path))[2]


def test_a_file_without_any_event_fails(tmp_path: Path, rules: Path) -> None:
    assert ran("test", written(tmp_path / "x", [], b"{}"), "--rules", str(rules))[0] == 1
    status, _, err = ran("test", str(tmp_path / "none"), "--rules", str(rules))
    assert (status, err.startswith("volteface alerts: [Errno 2]")) == (1, True)


def test_check_lists_rules_or_names_all_that_is_wrong(tmp_path: Path) -> None:
    status, out, _ = ran("check", str(SHIPPED))
    assert (status, out.splitlines()[0]) == (0, "turned-against: flip, info")
    path = tmp_path / "rules.toml"
    path.write_text('[[rules]]\nname = "A"\nkind = "flip"\nfrm = ["oppose"]\n', encoding="utf-8")
    status, _, err = ran("check", str(path))
    assert status == 2
    assert [line.partition(": ")[2].partition(":")[0] for line in err.splitlines()] == [
        "rules[0].name", "rules[0].frm",
    ]  # fmt: skip


def test_another_run_than_live_raises_none_unless_asked(rules: Path) -> None:
    status, _, err = ran("run", "--rules", str(rules), VOLTEFACE_RUN="again")
    assert (status, len(err.splitlines())) == (2, 1)
    assert "run again is not live and raises no alerts; --any-run" in err


def test_counting_turns_needs_events_of_all_turns(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('[[rules]]\nname = "a"\nkind = "flip_back"\nturns = 3\n', encoding="utf-8")
    status, _, err = ran("run", VOLTEFACE_ALERTS=str(path))
    assert (status, "VOLTEFACE_EMIT_PERSISTED=true" in err) == (2, True)


def test_without_a_broker_it_is_told(rules: Path) -> None:
    script = ["run", "--rules", str(rules)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VOLTEFACE_")}
    done = subprocess.run(
        [sys.executable, "-c", ALONE.format(arguments=script)],
        cwd=ROOT, env=environment | {"VOLTEFACE_BROKER": "kafka://127.0.0.1:1"},
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "volteface alerts: topics of run live: 127.0.0.1:1: " in done.stderr


async def test_the_role_raises_alerts_until_it_is_told_to_stop(
    broker: str, redis: EmbeddedRedis, topic_prefix: str, rules: Path, tmp_path: Path, talk: list[Event]
) -> None:
    settings = Settings(
        broker=f"kafka://{broker}", redis=redis.url, topic_prefix=topic_prefix, partitions=1,
        rebalance_seconds=3.0, batch_seconds=1.0, broker_idempotence=False, run="shadow",
    )  # fmt: skip
    log = tmp_path / "role.log"
    script = ALONE.format(arguments=["run", "--rules", str(rules), "--any-run"])
    async with collecting(settings) as sent:
        await produce(settings, talk)
        with agent_process(settings, log, script) as process:
            await sent.until(lambda _: "alert.withdrawn" in log.read_text(encoding="utf-8"), "both alerts")
            process.send_signal(signal.SIGTERM)
            assert await ended(process, 15.0) == 0
        await sent.rest()
    assert len(sent.alerts) == 2
    logged = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert {"alerts.started", "alert.raised", "alert.withdrawn", "alerts.stopped"} <= {
        entry["event"] for entry in logged
    }
    assert "u-1" not in log.read_text(encoding="utf-8")
    assert role.group(settings) == f"{topic_prefix}-shadow.alerts"
