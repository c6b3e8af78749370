"""The files of a Slack export: a folder, or the .zip that Slack gives."""

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, cast

_LISTS = ("channels.json", "groups.json", "mpims.json", "dms.json")
_DAY = re.compile(r"(?P<channel>[^/]+)/[0-9]{4}-[0-9]{2}-[0-9]{2}\.json")


class Archive(Protocol):
    """Files by their names, with "/" between folders."""

    def names(self) -> list[str]:
        """All of them. Raises OSError."""
        ...

    def open(self, name: str) -> BinaryIO:
        """One of them. Raises OSError."""
        ...


class Folder:
    """An export that was unpacked."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        """As Archive says; only as deep as an export goes."""
        found = (path for deep in ("*.json", "*/*.json") for path in self._path.glob(deep))
        return [path.relative_to(self._path).as_posix() for path in found]

    def open(self, name: str) -> BinaryIO:
        """As Archive says."""
        return (self._path / name).open("rb")


class Zip:
    """An export as Slack gives it; nothing of it is unpacked to disk."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file

    def names(self) -> list[str]:
        """As Archive says."""
        return self._file.namelist()

    def open(self, name: str) -> BinaryIO:
        """As Archive says."""
        return cast(BinaryIO, self._file.open(name))


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """The export's files. Raises OSError, while they are read, too, for a broken or locked .zip."""
    if path.is_dir():
        yield Folder(path)
        return
    try:
        with zipfile.ZipFile(path) as file:
            yield Zip(file)
    # RuntimeError: a password is asked for; NotImplementedError: packed in a way that Python does not know.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise OSError(f"broken or locked .zip: {error}") from None


class Layout:
    """Where things stand in an export, which may stand in a folder of its own."""

    def __init__(self, names: list[str]) -> None:
        tops = [name for name in names if name.rpartition("/")[2] in _LISTS]
        self._root = min((name.rpartition("/")[0] for name in tops), key=len, default="")
        prefix = f"{self._root}/" if self._root else ""
        self._names = {name.removeprefix(prefix): name for name in names if name.startswith(prefix)}
        self.is_export = bool(tops)

    def lists(self) -> list[str]:
        """The files that name channels."""
        return [self._names[name] for name in _LISTS if name in self._names]

    def users(self) -> str | None:
        """The file of people."""
        return self._names.get("users.json")

    def days(self) -> Mapping[str, list[str]]:
        """The files of each channel's folder, by day."""
        found: dict[str, list[str]] = {}
        for name in sorted(self._names):
            if day := _DAY.fullmatch(name):
                found.setdefault(day["channel"], []).append(self._names[name])
        return found
