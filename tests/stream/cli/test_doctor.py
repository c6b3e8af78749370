"""`volteface doctor`: tables for people, lines for machines, and the exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from stream.cli import doctor
from stream.doctor import Report
from stream.doctor.checks import Check, failed, ok, skipped, warning
from stream.settings import survey

ROOT = Path(__file__).parents[3]
ALONE = "import typer; from stream.cli.doctor import doctor; typer.run(doctor)"
DEAD = {
    "VOLTEFACE_BROKER": "kafka://127.0.0.1:1",
    "VOLTEFACE_REDIS": "redis://:hunter2@127.0.0.1:1/0",
    "VOLTEFACE_READER": "rule",
}
GOOD = (
    ok("python", "3.11"),
    warning("topics", "missing: [bold]x[/bold]", "start it"),
    skipped("worker", "unset"),
)


def invoke(monkeypatch: pytest.MonkeyPatch, checks: tuple[Check, ...], *arguments: str) -> Result:
    async def found() -> Report:
        return Report(checks, survey({}))

    monkeypatch.setattr(doctor, "examine", found)
    app = typer.Typer()
    app.command()(doctor.doctor)
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "60"})


def test_warnings_are_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke(monkeypatch, GOOD)
    assert result.exit_code == 0
    assert result.stdout.strip().endswith("1 ok, 1 warning, 1 skipped")


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_failure_is_exit_status_1(monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    assert invoke(monkeypatch, (*GOOD, failed("redis", "gone", "start it")), *arguments).exit_code == 1


def test_the_tables_show_texts_as_they_are_and_cut_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/a/path/" + "x" * 80
    shown = invoke(monkeypatch, (*GOOD, ok("weights", path))).stdout
    assert "[bold]x[/bold]" in shown
    assert "-> start it" in shown
    assert "VOLTEFACE_BROKER_SASL_MECHANISM" in shown
    assert shown.count("x" * 10) >= 3
    assert "…" not in shown


def test_lines_are_one_object_each(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.loads(line) for line in invoke(monkeypatch, GOOD, "--json").stdout.splitlines()]
    assert lines[1] == {
        "kind": "check",
        "name": "topics",
        "status": "warning",
        "found": "missing: [bold]x[/bold]",
        "remedy": "start it",
    }
    assert {line["name"] for line in lines if line["kind"] == "setting"} >= {"VOLTEFACE_BROKER", "rooms"}


def test_a_machine_without_services_is_told_without_noise() -> None:
    given = {name: value for name, value in os.environ.items() if not name.startswith("VOLTEFACE_")}
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", ALONE, "--json"],
        env=given | DEAD,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "hunter2" not in done.stdout
    lines = [
        msgspec.json.decode(line, type=doctor.CheckLine | doctor.SettingLine)
        for line in done.stdout.splitlines()
    ]
    wrong = {line.name for line in lines if isinstance(line, doctor.CheckLine) and line.status == "failed"}
    assert wrong == {"broker", "redis"}
