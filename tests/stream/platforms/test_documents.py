"""Documents: mended on the way, in pieces of any size, and never whole in memory."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream.platforms.documents import Repaired, events, items
from tests.stream.platforms.test_lines import Endless
from tracker.records import Reason, Refused


class Pieces(io.BytesIO):
    """A stream that gives as many bytes as it likes."""

    def __init__(self, raw: bytes, size: int) -> None:
        super().__init__(raw)
        self._size = size

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._size)


def mended(raw: bytes, size: int = 1 << 16) -> bytes:
    stream, found = Repaired(Pieces(raw, size)), b""
    while piece := stream.read():
        found += piece
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1 << 16])
@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (rb'"a\x0Bb"', "a\x0bb"),
        (rb'"\x1f\x00"', "\x1f\x00"),
        (rb'"a\\x0Bb"', "a\\x0Bb"),
        (rb'"a\\\x0Bb"', "a\\\x0bb"),
        (rb'"\\\\x41"', "\\\\x41"),
        (rb'"\u00e9\n\x09\""', 'é\n\t"'),
        ('\ufeff"é漢😀"'.encode(), "é漢😀"),
        (b'"a\xffb"', "a\ufffdb"),
        ('"😀'.encode()[:-1] + b'"', "\ufffd"),
    ],
)
def test_what_json_does_not_know_is_mended(raw: bytes, text: str, size: int) -> None:
    assert json.loads(mended(raw, size)) == text


def test_nothing_is_read_where_nothing_is_asked_for() -> None:
    stream = Repaired(io.BytesIO(b"{}"))
    assert (stream.read(0), stream.read(), stream.read()) == (b"", b"{}", b"")


@settings(deadline=None)  # a busy machine is no fault
@given(st.binary(max_size=60), st.integers(1, 7))
def test_the_size_of_the_pieces_changes_nothing(raw: bytes, size: int) -> None:
    assert mended(raw, size) == mended(raw)


def test_items_come_with_their_places_and_the_rest_is_shown() -> None:
    raw = b'{"id": 7, "rows": [{"a": [{"b": 1}]}, 5, {"c": {}}], "rows.item": {"d": 2}}'
    seen: list[tuple[str, str, object]] = []
    found = list(items(events(io.BytesIO(raw)), "rows.item".__eq__, seen.append))
    assert found[:2] == [("rows.item", {"a": [{"b": 1}]}), ("rows.item", {"c": {}})]
    assert ("id", "number", 7) in seen


def test_an_item_comes_before_the_file_ends() -> None:
    row = b'{"a": "' + b"x" * 1000 + b'"},\n'
    endless = Endless(row)
    endless_document = io.BufferedReader(Joined(b'{"rows": [', endless))
    rows = items(events(endless_document), "rows.item".__eq__, lambda part: None)
    for _ in range(50):
        assert next(rows)[1] == {"a": "x" * 1000}
    assert endless.read_bytes < 1_000_000


class Joined(io.RawIOBase):
    """A beginning, and a stream after it."""

    def __init__(self, head: bytes, rest: Endless) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        if self._head:
            count = min(len(buffer), len(self._head))
            buffer[:count], self._head = self._head[:count], self._head[count:]
            return count
        size = len(self._rest.piece)  # whole pieces, so that they join
        filled = 0
        while filled + size <= len(buffer):
            filled += self._rest.readinto(memoryview(buffer)[filled : filled + size])  # type: ignore[arg-type]
        return filled


@pytest.mark.parametrize(
    "raw", [b'{"a": ', b'{"a": nope}', b"\x00", b'{"a": 1e999}', b'{"a": "\n"}', b"]", b'{"secret words": x}']
)
def test_a_broken_document_is_refused_without_what_it_says(raw: bytes) -> None:
    with pytest.raises(Refused) as refused:
        list(events(io.BytesIO(raw)))
    assert refused.value.reason == Reason.NOT_JSON
    assert "secret" not in str(refused.value)
    assert refused.value.got


def test_a_document_that_is_too_deep_is_refused_at_once() -> None:
    with pytest.raises(Refused, match="nested too deeply"):
        list(events(io.BytesIO(b'{"a": ' + b"[" * 1_000_000)))


def test_places_are_called_by_their_keys() -> None:
    found = [(where, what) for where, what, _ in events(io.BytesIO(b'{"a": [{"b": 1}, 2], "c": {"d": []}}'))]
    assert [f"{where}:{what}" for where, what in found] == [
        ":start_map", ":map_key", "a:start_array", "a.item:start_map", "a.item:map_key", "a.item.b:number",
        "a.item:end_map", "a.item:number", "a:end_array", ":map_key", "c:start_map", "c:map_key",
        "c.d:start_array", "c.d:end_array", "c:end_map", ":end_map",
    ]  # fmt: skip
