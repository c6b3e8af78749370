"""A file's beginning, by which its form is known."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from stream.platforms.documents import events
from stream.platforms.lines import MAX_LINE_BYTES, read_line
from tracker.records import Refused

HEAD_BYTES = 1 << 16

_BOM = b"\xef\xbb\xbf"
_OPENINGS = frozenset({b"{", b"["})  # all that stands in the first line of JSON that is written over many
_SCALARS = frozenset({"string", "number", "boolean", "null"})


class Sample(msgspec.Struct, frozen=True):
    """What is known of a file before it is read."""

    path: Path | None = None  # none of a stream
    first: bytes = b""  # its first line that is not blank, or the beginning of it
    fields: Mapping[str, Any] = {}  # of its first object, as far as they were seen; scalars with their values
    is_document: bool = False  # one JSON document, not an object a line


def sampled(stream: BinaryIO, path: Path | None = None) -> tuple[bytes, Sample]:
    """What was read of the stream, and what it shows. No more is read than that needs. Raises OSError."""
    head, first = b"", b""
    while not first and len(head) < HEAD_BYTES and (line := read_line(stream)):
        head += line
        first = line.removeprefix(_BOM).strip() if head == line else line.strip()
    is_long = len(first) > MAX_LINE_BYTES
    is_document = first.startswith((b"{", b"[")) and (is_long or first in _OPENINGS or first[:1] == b"[")
    while is_document and len(head) < HEAD_BYTES and (line := read_line(stream)):
        head += line
    fields = _fields(head[: None if first[:1] == b"{" and not is_document else HEAD_BYTES])
    return head, Sample(path, first[:HEAD_BYTES], fields, is_document)


def _fields(head: bytes) -> dict[str, Any]:
    """The fields of the first object, as far as it goes: a beginning of JSON breaks off somewhere."""
    found: dict[str, Any] = {}
    array = False
    try:
        for where, what, value in events(BytesIO(head)):
            array = array or (where, what) == ("", "start_array")
            at = "item" if array else ""
            if what == "map_key" and where == at:
                found[value] = None
            elif what in _SCALARS and where.removeprefix(f"{at}.") in found and where.startswith(at):
                found[where.removeprefix(f"{at}.") if array else where] = value
            elif (where, what) == (at, "end_map"):
                break
    except Refused:
        pass
    return found
