"""The lines of a path, of standard input or of a stream, one at a time and never longer than a limit."""

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from tracker.records import Reason, Record, Refused

MAX_LINE_BYTES = 1 << 20
STDIN = "-"

_BOM = b"\xef\xbb\xbf"

Source = str | Path | BinaryIO  # "-" is standard input; ".gz" is unpacked


class Line(msgspec.Struct, frozen=True):
    """What a file's line gave: a record, or why there is none. One line may give several."""

    number: int  # from 1, as editors count
    result: Record | Refused


class RawLine(msgspec.Struct, frozen=True):
    """A line that is not blank, without its end; or its refusal, where it is too long."""

    number: int
    content: bytes | Refused


def opened(source: Source) -> AbstractContextManager[BinaryIO]:
    """The source as a binary stream; only what was opened here is closed. Raises OSError."""
    if not isinstance(source, str | Path):
        return nullcontext(source)
    if str(source) == STDIN:
        return nullcontext(sys.stdin.buffer)
    path = Path(source)
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def raw_lines(stream: BinaryIO) -> Iterator[RawLine]:
    """The stream's lines that are not blank. Raises OSError, for a broken gzip file too."""
    number = 0
    while line := _read(stream):
        number += 1
        content = line.removeprefix(_BOM) if number == 1 else line
        if len(line.rstrip(b"\r\n")) > MAX_LINE_BYTES:
            _skip_rest(stream, line)
            yield RawLine(number, _too_long())
        elif content := content.strip():
            yield RawLine(number, content)


def _read(stream: BinaryIO) -> bytes:
    """The next line, or as much of it as shows that it is too long."""
    try:
        return stream.readline(MAX_LINE_BYTES + len(b"\r\n"))
    except (EOFError, zlib.error) as error:
        raise OSError(f"broken gzip file: {error}") from None


def _skip_rest(stream: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = _read(stream)


def _too_long() -> Refused:
    remedy = f"at most {MAX_LINE_BYTES} bytes a line; is it one JSON object a line?"
    return Refused(Reason.TOO_LONG, "line", f"line of more than {MAX_LINE_BYTES} bytes", remedy)
