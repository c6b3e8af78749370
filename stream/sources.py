"""Finds the value of every option: in the environment, else in the TOML file, else its default."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from stream.options import ENVIRONMENT_PREFIX, Option, SettingsError, Source, kind_of, taken

T = TypeVar("T")

# A key's value from what stands in the file, and the folder that its paths are relative to.
Reads = Callable[[object, Path], Any]

CONFIG = ENVIRONMENT_PREFIX + "CONFIG"


class Found(msgspec.Struct):
    """What was found for each key; a key with a problem has its default as value."""

    values: dict[str, Any] = msgspec.field(default_factory=dict)
    raw: dict[str, object] = msgspec.field(default_factory=dict)  # as set, where it is set
    sources: dict[str, Source] = msgspec.field(default_factory=dict)
    problems: dict[str, SettingsError] = msgspec.field(default_factory=dict)

    def put(self, key: str, value: object, shown: object = None) -> None:
        """Give a key that is not set the value that comes with another."""
        self.values[key], self.raw[key] = value, value if shown is None else shown

    def shown(self, option: Option) -> str:
        """The option's value for people; of a wrong one its kind alone."""
        if problem := self.problems.get(option.key):
            return problem.got
        return option.shown(self.raw.get(option.key, option.default))


def find(options: Iterable[Option], environment: Mapping[str, str], other: Mapping[str, Reads]) -> Found:
    """Every option's value, and those of the `other` keys that stand in the file alone, as each is read."""
    options = tuple(options)
    file, folder, problem = _file(environment)
    found = Found(problems={"config": problem} if problem else {})
    for option in options:
        _find(found, option, environment, file, folder)
    for key, reads in other.items():
        if key in file:
            _find_in_file(found, key, reads, file[key], folder)
    known = [option.key for option in options if option.env != CONFIG] + list(other)
    for key in file.keys() - set(known):
        found.problems.setdefault("config", _unknown(key, known))
    return found


def misspelt(options: Iterable[Option], environment: Iterable[str]) -> dict[str, str]:
    """Variables that are no option but nearly one, each with the name that may be meant.

    They are not refused: Kubernetes makes variables such as VOLTEFACE_WORKER_PORT for a Service of that name.
    """
    known = [option.env for option in options]
    strange = (name for name in environment if name.startswith(ENVIRONMENT_PREFIX) and name not in known)
    near = ((name, difflib.get_close_matches(name, known, 1, 0.85)) for name in sorted(strange))
    return {name: match[0] for name, match in near if match}


def meant(key: str, known: Sequence[str], otherwise: str) -> str:
    """The remedy for an unknown key: the name that may be meant, `otherwise` where none comes near."""
    near = difflib.get_close_matches(key, known, 1)
    return f"did you mean {near[0]}?" if near else otherwise


def read_toml(path: Path, of: type[T]) -> T:
    """A TOML file as a value of that type. Raises ValueError or OSError."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=of)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None


def _file(environment: Mapping[str, str]) -> tuple[dict[str, Any], Path, SettingsError | None]:
    """The file's table, the folder its paths are relative to, and what kept it from being read."""
    name = environment.get(CONFIG)
    if not name:
        return {}, Path(), None
    path = Path(name).expanduser()
    try:
        return read_toml(path, dict[str, Any]), path.parent, None
    except OSError as error:
        remedy = f"set a readable TOML file's path: {error.strerror}"
    except ValueError as error:
        remedy = f"write TOML: {error}"
    return {}, path.parent, SettingsError(CONFIG, Source.ENVIRONMENT, kind_of(name), remedy)


def _find(
    found: Found, option: Option, environment: Mapping[str, str], file: Mapping[str, Any], folder: Path
) -> None:
    raw: object = environment.get(option.env)
    source = Source.ENVIRONMENT
    if not raw:  # compose files write `${NAME:-}` for what may be unset
        raw, source = file.get(option.key) if option.env != CONFIG else None, Source.FILE
    if raw is None:
        source = Source.DEFAULT
    found.sources[option.key] = source
    found.values[option.key] = option.default
    if source is Source.DEFAULT:
        return
    found.raw[option.key] = raw
    try:
        found.values[option.key] = taken(option, raw, source, folder if source is Source.FILE else Path())
    except SettingsError as error:
        found.problems[option.key] = error


def _find_in_file(found: Found, key: str, reads: Reads, raw: object, folder: Path) -> None:
    found.raw[key], found.sources[key] = raw, Source.FILE
    try:
        found.values[key] = reads(raw, folder)
    except SettingsError as error:
        found.problems[key] = error
    except msgspec.ValidationError as error:
        found.problems[key] = SettingsError(key, Source.FILE, kind_of(raw), f"mend it: {error}")


def _unknown(key: str, known: list[str]) -> SettingsError:
    if key == "config":
        remedy = f"only the environment names the file, as {CONFIG}"
    else:
        remedy = meant(key, known, "remove it; volteface doctor lists all settings")
    return SettingsError(key, Source.FILE, "unknown key", remedy)
