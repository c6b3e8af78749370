import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from stream.dead_letters import (
    MAX_HEADER_BYTES,
    MAX_KEY_BYTES,
    MAX_ORIGINAL_HEADERS_BYTES,
    MAX_VALUE_BYTES,
    Headers,
    dead_letter,
)
from stream.sender import MAX_REQUEST_BYTES
from tracker.records import Reason, Refused

REFUSED = Refused(Reason.NOT_JSON, "value", "what stood there", "send one JSON object")
SOURCE = "a/b.turns/3/41"


def letter(
    key: bytes | None = b"k", value: bytes | None = b"v", headers: Headers = (), refused: Refused = REFUSED
) -> tuple[bytes | None, bytes | None, dict[str, bytes]]:
    message, found = dead_letter(key, value, headers, SOURCE, refused)
    assert message.topic == "dead-letters"
    return message.key, message.value, dict(found)


def test_headers_are_kafka_connects_and_ours() -> None:
    key, value, headers = letter()
    assert (key, value) == (b"k", b"v")
    assert headers == {
        "__connect.errors.topic": b"a/b.turns",
        "__connect.errors.partition": b"3",
        "__connect.errors.offset": b"41",
        "__connect.errors.connector.name": b"volteface",
        "__connect.errors.stage": b"VALUE_CONVERTER",
        "__connect.errors.class.name": b"tracker.parsing",
        "__connect.errors.exception.class.name": b"tracker.records.Refused",
        "__connect.errors.exception.message": str(REFUSED).encode(),
        "volteface.reason": b"not_json",
        "volteface.field": b"value",
        "volteface.got": b"what stood there",
        "volteface.remedy": b"send one JSON object",
    }


@pytest.mark.parametrize("key", [None, b"", b"\xa2"])
@pytest.mark.parametrize("value", [None, b"", b"\xff\x00"])
def test_keys_and_values_are_kept_as_they_came(key: bytes | None, value: bytes | None) -> None:
    assert letter(key, value)[:2] == (key, value)


def test_what_the_record_brought_is_never_overwritten() -> None:
    brought = [("volteface.reason", b"theirs"), ("__connect.errors.topic", b"first"), ("trace", b"1")]
    _, found = dead_letter(b"k", b"v", brought, SOURCE, REFUSED)
    assert list(found)[:3] == brought
    assert [name for name, _ in found].count("volteface.reason") == 1


def test_what_is_too_long_is_cut_and_says_so() -> None:
    key, value, headers = letter(b"k" * 5000, b"v" * 900_000)
    assert (len(key or b""), len(value or b"")) == (MAX_KEY_BYTES, MAX_VALUE_BYTES)
    assert (headers["volteface.cut.key"], headers["volteface.cut.value"]) == (b"5000", b"900000")


def test_a_header_is_cut_between_characters() -> None:
    _, _, headers = letter(refused=Refused(Reason.NOT_JSON, "x", "é" * 1000, "\ud800 half"))
    assert headers["volteface.got"] == "é".encode() * (MAX_HEADER_BYTES // 2)
    assert headers["volteface.remedy"] == b"? half"


@pytest.mark.parametrize("size", [MAX_ORIGINAL_HEADERS_BYTES, 1])
def test_headers_that_do_not_fit_are_left_out(size: int) -> None:
    _, _, headers = letter(headers=[("small", b"1"), ("large", b"x" * size), ("after", b"2")])
    assert ("large" in headers) is ("after" in headers) is (size == 1)
    assert headers["small"] == b"1"


def test_a_header_without_value_is_kept_as_empty() -> None:
    assert letter(headers=[("none", None)])[2]["none"] == b""  # type: ignore[list-item]


@settings(max_examples=30, deadline=None)
@given(
    headers=st.lists(
        st.tuples(st.sampled_from(["", "h", "é" * 2000, "x" * 20_000]), st.sampled_from([b"", b"v" * 3000])),
        max_size=8,
    ),
    times=st.sampled_from([1, 100, 60_000]),
    key=st.sampled_from([None, b"k" * 900_000]),
    value=st.sampled_from([None, b"v" * 1_000_000]),
    got=st.sampled_from(["", "☕" * 100_000]),
)
def test_it_always_fits_a_message(
    headers: list[tuple[str, bytes]], times: int, key: bytes | None, value: bytes | None, got: str
) -> None:
    refused = Refused(Reason.FAILED, got, got, got)
    message, found = dead_letter(key, value, headers * times, SOURCE, refused)
    size = DefaultRecordBatchBuilder.estimate_size_in_bytes(message.key, message.value, list(found))
    assert size < MAX_REQUEST_BYTES * 0.7


def test_who_was_named_in_clear_is_not_named_again() -> None:
    refused = Refused(Reason.IN_CLEAR, "holder", "a name in clear", "send a pseudonym")
    named = b"acme/room", b'{"holder": "ann"}', [("from", b"ann")], "turns/0/7", refused
    message, headers = dead_letter(*named, bare=True)
    assert (message.key, message.value) == (b"acme/room", None)
    assert b"ann" not in b"".join(value for _, value in headers)
    assert dict(headers)["__connect.errors.offset"] == b"7"
