"""All checks together: wrong settings, parts that break, hang or are slow, and dead services in time."""

import asyncio
import socket
import time
from pathlib import Path

import pytest

from stream.doctor import Check, Report, Status, examination, examine
from stream.doctor.checks import ok
from stream.doctor.examination import Part
from stream.settings import Settings
from tests.stream.doctor.helpers import by_name

DEAD = {"VOLTEFACE_BROKER": "kafka://127.0.0.1:1", "VOLTEFACE_REDIS": "redis://127.0.0.1:1/0"}
RULE = DEAD | {"VOLTEFACE_READER": "rule"}


async def fine(_: Settings) -> list[Check]:
    return [ok("fine", "yes")]


async def breaks(_: Settings) -> list[Check]:
    raise KeyError("gone")


async def hangs(_: Settings) -> list[Check]:
    await asyncio.sleep(60)
    return []


async def test_what_breaks_or_hangs_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "PART_SECONDS", 0.1)
    report = await examine({}, (Part("a", breaks), Part("b", hangs), Part("c", fine)))
    found = by_name(report.checks)
    assert {name: check.status for name, check in found.items()} == {
        "settings": "ok",
        "a": "failed",
        "b": "failed",
        "fine": "ok",
    }
    assert report.count(Status.FAILED) == 2


async def test_parts_run_side_by_side() -> None:
    async def slow(_: Settings) -> list[Check]:
        await asyncio.sleep(0.3)
        return []

    began = time.monotonic()
    await examine({}, (Part("a", slow),) * 5)
    assert time.monotonic() - began < 1.2


async def test_dead_services_are_told_in_time(capfd: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    report = await examine(RULE | {"VOLTEFACE_WORKER": "http://127.0.0.1:1"})
    assert time.monotonic() - began < 10
    wrong = {check.name for check in report.checks if check.status is Status.FAILED}
    assert wrong == {"broker", "redis", "worker"}
    assert capfd.readouterr() == ("", "")


async def test_silent_services_are_told_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        environment = {
            "VOLTEFACE_BROKER": f"kafka://{where};{where};{where}",
            "VOLTEFACE_REDIS": f"redis+sentinel://{where},{where},{where}/main",
            "VOLTEFACE_WORKER": f"http://{where}",
        }
        began = time.monotonic()
        report = await examine(environment)
        assert time.monotonic() - began < 10
    wrong = {check.name for check in report.checks if check.status is Status.FAILED}
    assert wrong == {"broker", "redis", "worker"}


async def test_a_wrong_setting_is_named_and_what_stands_on_it_is_not_judged_by_a_default() -> None:
    report = await examine(RULE | {"VOLTEFACE_REDIS": "http://:hunter2@cache"})
    found = by_name(report.checks)
    assert found["setting VOLTEFACE_REDIS"].status == "failed"
    assert found["redis"].status == "skipped"
    assert found["broker"].status == "failed"
    assert "hunter2" not in str(report)


async def test_a_settings_file_that_cannot_be_read_leaves_only_the_installation_to_judge(
    tmp_path: Path,
) -> None:
    (tmp_path / "v.toml").write_text("broker = ")
    report = await examine(RULE | {"VOLTEFACE_CONFIG": str(tmp_path / "v.toml")})
    found = by_name(report.checks)
    assert found["setting VOLTEFACE_CONFIG"].status == "failed"
    assert {found[name].status for name in ("broker", "redis", "worker", "reader")} == {"skipped"}
    assert found["python"].status == "ok"


async def test_an_unknown_key_of_the_file_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "v.toml").write_text("brokr = 'kafka://a:1'\n")
    found = by_name((await examine(RULE | {"VOLTEFACE_CONFIG": str(tmp_path / "v.toml")})).checks)
    assert (found["setting brokr"].status, found["setting brokr"].remedy) == (
        "failed",
        "did you mean broker?",
    )
    assert found["broker"].status == "failed"


async def test_a_misspelt_variable_is_a_warning() -> None:
    found = by_name((await examine({"VOLTEFACE_REDDIS": "x"}, ())).checks)
    assert found["variable VOLTEFACE_REDDIS"].remedy == "did you mean VOLTEFACE_REDIS?"


async def test_every_setting_is_listed_masked() -> None:
    report: Report = await examine(
        {"VOLTEFACE_API_KEY": "hunter2", "VOLTEFACE_REDIS": "redis://:hunter2@h/0"}, ()
    )
    shown = {row.key: row.value for row in report.settings}
    assert (shown["api_key"], shown["redis"]) == ("***", "redis://:***@h/0")
    assert "rooms" in shown
    assert "hunter2" not in str(report)
