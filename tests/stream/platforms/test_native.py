"""The native form: records and refusals, each with its line's number."""

import io

from hypothesis import given
from hypothesis import strategies as st

from stream.platforms import native
from stream.platforms.lines import raw_lines
from tracker.records import ClearTurns, CreateTurn, Reason, Refused, encode

TURN = (
    b'{"conversation": "c", "sent_at": "2026-11-29T20:14:05Z", "turn": "m-1", "holder": "u-1", "text": "hi"}'
)
CLEAR = b'{"op": "clear", "conversation": "room", "sent_at": "2026-11-29T20:14:05Z", "id": "c-1"}'


def read(raw: bytes) -> list[tuple[int, object]]:
    return [(line.number, line.result) for line in native.read(raw_lines(io.BytesIO(raw)))]


def test_records_of_any_operation_keep_their_line_numbers() -> None:
    found = read(TURN + b"\n\n" + CLEAR + b"\n")
    assert [(number, type(result)) for number, result in found] == [(1, CreateTurn), (3, ClearTurns)]


def test_a_wrong_line_is_refused_and_the_next_is_read() -> None:
    found = read(b"{\n" + TURN + b'\n{"op": "like"}\n' + b"x" * 2_000_000 + b"\n" + TURN)
    assert [number for number, _ in found] == [1, 2, 3, 4, 5]
    reasons = [result.reason for _, result in found if isinstance(result, Refused)]
    assert reasons == [Reason.NOT_JSON, Reason.UNKNOWN_OP, Reason.TOO_LONG]


def test_what_is_read_is_what_was_written() -> None:
    ((_, record),) = read(TURN)
    assert isinstance(record, CreateTurn)
    assert read(encode(record)) == [(1, record)]


@given(st.binary(max_size=300))
def test_any_bytes_give_one_result_a_line(raw: bytes) -> None:
    numbers = [number for number, _ in read(raw)]
    assert numbers == sorted(set(numbers))
    assert len(numbers) <= raw.count(b"\n") + 1
