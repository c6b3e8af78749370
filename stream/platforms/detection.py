"""Opens a file of conversations in whatever form its first line shows."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

import msgspec

from stream.platforms import benchmark, convokit, native
from stream.platforms.lines import Line, RawLine, Source, opened, raw_lines
from tracker.parsing import decode
from tracker.records import Refused

Read = Callable[[Iterable[RawLine]], Iterator[Line]]

FORMS: Mapping[str, Read] = {"native": native.read, "benchmark": benchmark.read, "convokit": convokit.read}

_NATIVE = frozenset({"conversation", "op"})
_CONVOKIT = frozenset({"speaker", "user"})
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


class UnknownForm(ValueError):
    """A form that no reader reads."""


def detect(source: Source) -> str:
    """The form's name, by the first line that is not blank. Raises OSError."""
    with opened(source) as stream:
        return _form(next(raw_lines(stream), None))


def open_records(source: Source, form: str | None = None) -> Iterator[Line]:
    """The file's lines as they are read; without a form, by the first line.

    Raises UnknownForm at once, and OSError while it reads.
    """
    if form is not None and form not in FORMS:
        raise UnknownForm(f"no form {form!r}; one of {', '.join(FORMS)}")
    return _records(source, form)


def _records(source: Source, form: str | None) -> Iterator[Line]:
    with opened(source) as stream:
        lines = raw_lines(stream)
        first = next(lines, None)
        read = FORMS[form or _form(first)]
        yield from read(chain([first] if first else [], lines))


def _form(first: RawLine | None) -> str:
    """A line of no known form is taken as native, whose refusals say what a line must be."""
    fields = _fields(first)
    if "turns" in fields:
        return "benchmark"
    return "convokit" if fields & _CONVOKIT and not fields & _NATIVE else "native"


def _fields(first: RawLine | None) -> frozenset[str]:
    if first is None or isinstance(first.content, Refused):
        return frozenset()
    try:
        fields = decode(first.content, _OBJECT)
    except Refused:
        return frozenset()
    return frozenset(fields)
