"""The lines of a path, of standard input or of a stream, one at a time and never longer than a limit."""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from tracker.records import Reason, Record, Refused, check

MAX_LINE_BYTES = 1 << 20
STDIN = "-"

_BOM = b"\xef\xbb\xbf"

Source = str | Path | BinaryIO  # "-" is standard input; ".gz" is unpacked


class Line(msgspec.Struct, frozen=True):
    """What a file's line gave: a record, or why there is none. One line may give several."""

    number: int  # from 1, as editors count; in a file that is one JSON document, the message's place
    result: Record | Refused


class RawLine(msgspec.Struct, frozen=True):
    """A line that is not blank, without its end; or its refusal, where it is too long."""

    number: int
    content: bytes | Refused


class Resumed(io.RawIOBase):
    """A stream whose beginning was read already: it begins there again, and waits for no more than it needs.

    Reading raises OSError, for a broken gzip file too.
    """

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head, self._stream = head, cast(io.BufferedIOBase, stream)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """What is left of the beginning, else what the stream has."""
        if self._head:
            piece, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        else:
            with _broken_gzip():
                piece = self._stream.read1(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


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
    for line in every_line(stream):
        if isinstance(line.content, Refused):
            yield line
        elif content := line.content.strip():
            yield RawLine(line.number, content)


def every_line(stream: BinaryIO) -> Iterator[RawLine]:
    """The stream's lines, blank ones too, with nothing taken from them but their ends."""
    number = 0
    while line := read_line(stream):
        number += 1
        content = line.removeprefix(_BOM) if number == 1 else line
        if len(line.rstrip(b"\r\n")) > MAX_LINE_BYTES:
            _skip_rest(stream, line)
            yield RawLine(number, _too_long())
        else:
            yield RawLine(number, content.rstrip(b"\r\n"))


def read_line(stream: BinaryIO) -> bytes:
    """The next line, or as much of it as shows that it is too long. Raises OSError."""
    with _broken_gzip():
        return stream.readline(MAX_LINE_BYTES + len(b"\r\n"))


def checked(record: Record, names: Mapping[str, str]) -> Record:
    """As `check`; what is refused is called as the file calls it, by `names`. Raises Refused."""
    try:
        return check(record)
    except Refused as refused:
        field = names.get(refused.field, refused.field)
        raise Refused(refused.reason, field, refused.got, refused.remedy) from None


@contextmanager
def _broken_gzip() -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error) as error:
        raise OSError(f"broken gzip file: {error}") from None


def _skip_rest(stream: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = read_line(stream)


def _too_long() -> Refused:
    remedy = f"at most {MAX_LINE_BYTES} bytes a line; is it one JSON object a line?"
    return Refused(Reason.TOO_LONG, "line", f"line of more than {MAX_LINE_BYTES} bytes", remedy)
