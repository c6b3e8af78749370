"""A table of options made from an annotated struct: what each must be, and how it is shown.

It knows nothing about any one setting; `stream/settings.py` is the table.
"""

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from stream.addresses import masked

ENVIRONMENT_PREFIX = "VOLTEFACE_"
HIDDEN = "***"


class Source(enum.StrEnum):
    """Where a setting's value comes from; the environment wins over the file."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"


class SettingsError(ValueError):
    """A setting that cannot be taken: which, from where, the kind of its value, the remedy."""

    def __init__(self, setting: str, source: Source, got: str, remedy: str) -> None:
        self.setting, self.source, self.got, self.remedy = setting, source, got, remedy
        super().__init__(f"{setting} (from {source}): {got}; {remedy}")


class Option(msgspec.Struct, frozen=True):
    """One row of the table."""

    env: str
    key: str
    hint: Any  # the annotated type
    default: object
    help: str
    expects: str  # what is to be set, in words
    secret: bool
    check: Callable[[str], object] | None  # raises ValueError, whose message joins the remedy
    reads: Callable[[Path], object] | None  # the value is a file's path, and this makes the setting of it

    def name(self, source: Source) -> str:
        """The option as its source calls it."""
        return self.key if source is Source.FILE else self.env

    def shown(self, value: object) -> str:
        """A value for people: secrets, and passwords inside addresses, are masked."""
        if value is None:
            return "unset"
        if self.reads and not isinstance(value, str):
            return "built in"
        if isinstance(value, bool):
            return str(value).lower()
        return HIDDEN if self.secret else masked(str(value))


def about(
    text: str,
    expects: str | None = None,
    *,
    secret: bool = False,
    check: Callable[[str], object] | None = None,
    reads: Callable[[Path], object] | None = None,
    **limits: Any,
) -> msgspec.Meta:
    """The annotation of an option: its one-line help, what it expects, msgspec's limits (ge, le, pattern)."""
    extra = {"expects": expects, "secret": secret, "check": check, "reads": reads}
    meta: msgspec.Meta = msgspec.Meta(description=text, extra=extra, **limits)
    return meta


def table(of: type[msgspec.Struct]) -> tuple[Option, ...]:
    """The options of a struct: its fields that are annotated by `about`."""
    annotated = (field for field in msgspec.structs.fields(of) if get_origin(field.type) is Annotated)
    return tuple(_option(field) for field in annotated)


def taken(option: Option, raw: object, source: Source, folder: Path) -> object:
    """The option's value from what was set; paths are relative to `folder`. Raises SettingsError."""
    try:
        if option.reads or Path in _kinds(option.hint):
            path = folder / Path(msgspec.convert(raw, str)).expanduser()
            return option.reads(path) if option.reads else path
        return _converted(option, raw, strict=source is Source.FILE)
    except msgspec.ValidationError:
        remedy = f"set {option.expects}"
    except OSError as error:
        remedy = f"set {option.expects}: {error.strerror}"
    except ValueError as error:
        remedy = f"set {option.expects}: {error}"
    raise SettingsError(option.name(source), source, kind_of(raw), remedy)


def kind_of(value: object) -> str:
    """What a wrong value is, without saying it: it may be a secret in the wrong place."""
    if isinstance(value, str):
        return f"string of {len(value)} character{'' if len(value) == 1 else 's'}"
    names = {bool: "true or false", int: "integer", float: "number", list: "array", dict: "table"}
    return names.get(type(value), type(value).__name__)


def _converted(option: Option, raw: object, *, strict: bool) -> object:
    if isinstance(raw, str):
        raw = next((choice for choice in _choices(option.hint) if choice.lower() == raw.lower()), raw)
    value = msgspec.convert(raw, option.hint, strict=strict)
    if option.check and isinstance(value, str):
        option.check(value)
    return value


def _option(field: msgspec.structs.FieldInfo) -> Option:
    meta = field.type.__metadata__[0]
    factory = field.default_factory
    return Option(
        env=ENVIRONMENT_PREFIX + field.name.upper(),
        key=field.name,
        hint=field.type,
        default=field.default if factory is msgspec.NODEFAULT else factory(),
        help=meta.description,
        expects=meta.extra["expects"] or _in_words(field.type, meta),
        secret=meta.extra["secret"],
        check=meta.extra["check"],
        reads=meta.extra["reads"],
    )


def _in_words(hint: Any, meta: msgspec.Meta) -> str:
    kinds = _kinds(hint)
    if choices := _choices(hint):
        return f"one of {', '.join(choices)}"
    if bool in kinds:
        return "true or false"
    if int in kinds or float in kinds:
        least = f"from {meta.ge}" if meta.ge is not None else f"above {meta.gt}"
        return f"a {'whole ' if int in kinds else ''}number {least} to {meta.le}"
    return "a path" if Path in kinds else "text"


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The types that an annotated type is made of: (str, NoneType) of `Annotated[str | None, ...]`."""
    kind = get_args(hint)[0]
    return (kind, *get_args(kind))


def _choices(hint: Any) -> tuple[str, ...]:
    kind = get_args(hint)[0]
    return get_args(kind) if get_origin(kind) is Literal else ()
