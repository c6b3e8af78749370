"""Volteface's own form: one record of the turns topic a line."""

from collections.abc import Iterable, Iterator

from stream.platforms.lines import Line, RawLine
from tracker.parsing import parse
from tracker.records import Record, Refused


def read(lines: Iterable[RawLine]) -> Iterator[Line]:
    """A line for each of the file's."""
    return (Line(line.number, _result(line.content)) for line in lines)


def _result(content: bytes | Refused) -> Record | Refused:
    if isinstance(content, Refused):
        return content
    try:
        return parse(content)
    except Refused as refused:
        return refused
