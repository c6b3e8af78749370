from pathlib import Path

import pytest

from stream.doctor import examine, languages
from stream.settings import Settings, load
from tests.stream.doctor.helpers import by_name
from tracker.policy import Policy

TABLES = """
reader = "rule"
[[readers]]
languages = ["zh", "yue"]
reader = "generative"
model = "nowhere"
"""


def settings(folder: Path, toml: str, **environment: str) -> Settings:
    (folder / "volteface.toml").write_text(toml)
    return load(environment | {"VOLTEFACE_CONFIG": str(folder / "volteface.toml")})


def test_every_route_is_looked_at(tmp_path: Path) -> None:
    found = by_name(languages.examine(settings(tmp_path, TABLES)))
    assert found["languages"].status == "warning"
    assert (
        found["languages"].found
        == "yue: generative, zh: generative, all others: rule, whose events are marked fallback"
    )
    assert (found["language detector"].status, found["language detector"].found[:9]) == ("ok", "py3langid")
    assert found["weights for zh, yue"].status == "failed"
    assert found["adapter for zh, yue"].status == "warning"


def test_a_declared_default_is_no_fallback(tmp_path: Path) -> None:
    declared = settings(tmp_path, TABLES + '[[readers]]\nlanguages = ["*"]\n')
    assert languages.readers(declared).found == "yue: generative, zh: generative, all others: rule"
    assert languages.readers(declared).status == "ok"


def test_one_engine_reads_all(tmp_path: Path) -> None:
    forced = by_name(languages.examine(settings(tmp_path, TABLES, VOLTEFACE_READER="rule")))
    assert (forced["languages"].status, forced["languages"].found) == ("ok", "all: rule")
    assert forced["language detector"].status == "skipped"
    assert len(forced) == 2


def test_a_worker_reads_by_its_own_settings(tmp_path: Path) -> None:
    served = settings(tmp_path, TABLES, VOLTEFACE_WORKER="http://worker:8311")
    assert {check.status for check in languages.examine(served)[:1]} == {"skipped"}
    assert by_name(languages.examine(served))["weights for zh, yue"].status == "skipped"


def test_a_missing_detector_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "DETECTOR", "no-such-package")
    assert languages.detector(Settings()).status == "failed"


async def test_doctor_shows_them(tmp_path: Path) -> None:
    settings(tmp_path, TABLES)
    report = await examine({"VOLTEFACE_CONFIG": str(tmp_path / "volteface.toml")})
    assert by_name(report.checks)["languages"].status == "warning"
    shown = {row.key: row.value for row in report.settings}["readers"]
    assert shown == f"1 tables, default rule; zh, yue by policy {Policy().stamp}"
