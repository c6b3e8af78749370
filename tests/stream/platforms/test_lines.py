"""Lines: their limits, ends, byte order marks, gzip, standard input and streams that never end."""

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from stream.platforms.lines import MAX_LINE_BYTES, Resumed, checked, every_line, opened, raw_lines
from tracker.records import EPOCH, CreateTurn, Reason, Refused


class Endless(io.RawIOBase):
    """Bytes without end, counted: a reader that wants a whole line or file never comes back."""

    def __init__(self, piece: bytes) -> None:
        self.piece, self.read_bytes = piece, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        count = min(len(buffer), len(self.piece))
        buffer[:count] = self.piece[:count]
        self.read_bytes += count
        return count


def contents(raw: bytes) -> list[tuple[int, bytes | Refused]]:
    return [(line.number, line.content) for line in raw_lines(io.BytesIO(raw))]


@pytest.mark.parametrize("raw", [b"", b"\n", b"\r\n \t\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n"])
def test_a_file_of_nothing_has_no_lines(raw: bytes) -> None:
    assert contents(raw) == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_line_ends_and_blank_lines(end: bytes) -> None:
    assert contents(end.join([b"one", b"", b"  ", b"two"])) == [(1, b"one"), (4, b"two")]


def test_a_byte_order_mark_stands_at_the_start_alone() -> None:
    assert contents(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo") == [(1, b"one"), (2, b"\xef\xbb\xbftwo")]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_line_of_the_limit_is_taken_and_one_byte_more_is_not(end: bytes) -> None:
    longest = b"x" * MAX_LINE_BYTES
    assert contents(longest + end) == [(1, longest)]
    (number, refused) = contents(longest + b"x" + end)[0]
    assert number == 1
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.field) == (Reason.TOO_LONG, "line")


@pytest.mark.parametrize(
    "length", [MAX_LINE_BYTES + 1, MAX_LINE_BYTES + 2, MAX_LINE_BYTES + 3, 3 * MAX_LINE_BYTES]
)
def test_the_line_after_one_too_long_is_whole(length: int) -> None:
    found = contents(b"x" * length + b"\nnext\n")
    assert [number for number, _ in found] == [1, 2]
    assert found[1][1] == b"next"


def test_lines_are_read_as_they_are_asked_for() -> None:
    stream = Endless(b"a line\n")
    lines = raw_lines(io.BufferedReader(stream, 64))  # type: ignore[type-var]
    assert [next(lines).number for _ in range(3)] == [1, 2, 3]
    assert stream.read_bytes < 1000


@pytest.mark.parametrize("kind", ["path", "string", "stream", "gzip"])
def test_every_source_gives_the_same_lines(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(b"one\ntwo\n")
    packed = tmp_path / "file.jsonl.gz"
    packed.write_bytes(gzip.compress(b"one\ntwo\n"))
    source = {"path": path, "string": str(path), "stream": io.BytesIO(b"one\ntwo\n"), "gzip": packed}[kind]
    with opened(source) as stream:  # type: ignore[arg-type]
        assert [line.content for line in raw_lines(stream)] == [b"one", b"two"]


def test_standard_input_is_a_dash_and_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"one\n"))
    monkeypatch.setattr("sys.stdin", stdin)
    with opened("-") as stream:
        assert [line.content for line in raw_lines(stream)] == [b"one"]
    assert not stdin.closed


def test_a_stream_that_was_given_stays_open_and_a_path_is_closed(tmp_path: Path) -> None:
    given = io.BytesIO(b"one\n")
    with opened(given):
        pass
    assert not given.closed
    (tmp_path / "file").write_bytes(b"one\n")
    with opened(tmp_path / "file") as stream:
        pass
    assert stream.closed


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[BinaryIO]:
    """A packed file that lost its end."""
    packed = tmp_path / "file.gz"
    packed.write_bytes(gzip.compress(b"one\n" * 50_000)[:-20])
    with opened(packed) as stream:
        yield stream


def test_a_broken_gzip_file_is_an_os_error(broken: BinaryIO) -> None:
    with pytest.raises(OSError, match="gzip"):
        list(raw_lines(broken))


def test_a_file_that_is_no_gzip_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file.gz").write_bytes(b"plain\n")
    with opened(tmp_path / "file.gz") as stream, pytest.raises(OSError, match="gzip"):
        list(raw_lines(stream))


def test_every_line_is_given_as_it_stands() -> None:
    found = [(line.number, line.content) for line in every_line(io.BytesIO(b"\xef\xbb\xbf a \r\n\n\tb"))]
    assert found == [(1, b" a "), (2, b""), (3, b"\tb")]


@pytest.mark.parametrize("head", [b"", b"o", b"one\n", b"one\ntwo\nth"])
def test_a_stream_that_is_resumed_is_whole(head: bytes) -> None:
    rest = io.BytesIO(b"one\ntwo\nthree\n"[len(head) :])
    whole = io.BufferedReader(Resumed(head, rest))
    assert [line.content for line in raw_lines(whole)] == [b"one", b"two", b"three"]  # type: ignore[arg-type]


def test_a_broken_gzip_file_that_is_resumed_is_an_os_error(broken: BinaryIO) -> None:
    whole = io.BufferedReader(Resumed(b"", broken))
    with pytest.raises(OSError, match="gzip"):
        list(raw_lines(whole))  # type: ignore[arg-type]


def test_a_refusal_names_the_field_as_the_file_does() -> None:
    record = CreateTurn(conversation="c", sent_at=EPOCH, turn="1", holder="x" * 600, text="hi")
    with pytest.raises(Refused) as refused:
        checked(record, {"holder": "speaker"})
    assert (refused.value.field, refused.value.reason) == ("speaker", Reason.TOO_LONG)
    with pytest.raises(Refused, match="holder"):
        checked(record, {})
