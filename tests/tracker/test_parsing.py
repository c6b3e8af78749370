"""Parsing: any bytes become a record or a refusal, and each bad input is refused in its own words."""

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker import keys
from tracker.parsing import decode, parse, parse_keyed
from tracker.records import MAX_TEXT_BYTES, CreateTurn, EditTurn, Reason, Record, Refused

TURN = {
    "conversation": "room",
    "sent_at": "2026-11-29T20:14:05Z",
    "turn": "m-1",
    "holder": "u-1",
    "text": "hi",
}
OVERRIDE = {
    "op": "override",
    "conversation": "room",
    "sent_at": "2026-11-29T20:14:05Z",
    "id": "i",
    "by": "ada",
    "reason": "misread",
    "to": "support",
    "turn": "m-1",
}
OPS = "one of create, edit, delete, clear, target, override, erase"
RFC_3339 = "write RFC 3339 with Z or an offset: 2026-11-29T20:14:05Z"
NESTED = b"[" * 100_000

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def turn(**fields: Any) -> bytes:
    return json.dumps(TURN | fields).encode()


def without(field: str) -> bytes:
    return json.dumps({name: value for name, value in TURN.items() if name != field}).encode()


def override(**fields: Any) -> bytes:
    return json.dumps(OVERRIDE | fields).encode()


def refused(raw: bytes | None) -> Refused:
    with pytest.raises(Refused) as caught:
        parse(raw)
    return caught.value


def assert_record_or_refused(raw: bytes) -> None:
    try:
        record = parse(raw)
    except Refused as error:
        assert isinstance(error.reason, Reason)
        assert error.field
        assert error.got
        assert error.remedy
    else:
        assert isinstance(record, get_args(Record))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_refused(raw: bytes) -> None:
    assert_record_or_refused(raw)


@given(json_values)
def test_any_json_is_a_record_or_refused(value: Any) -> None:
    assert_record_or_refused(json.dumps(value).encode())


@given(
    st.sampled_from(["create", "edit", "delete", "clear", "target", "override", "erase", "other"]),
    st.dictionaries(
        st.sampled_from([*TURN, *OVERRIDE, "media", "revision", "status"]), json_values, max_size=4
    ),
)
def test_any_field_of_any_kind_is_taken_or_refused(op: str, fields: dict[str, Any]) -> None:
    assert_record_or_refused(json.dumps(OVERRIDE | TURN | {"op": op} | fields).encode())


@given(st.integers(0, 200), st.binary(min_size=1, max_size=3))
def test_a_spoilt_record_is_a_record_or_refused(at: int, spoilt: bytes) -> None:
    raw = turn(media=[{"modality": "image"}])
    assert_record_or_refused(raw[:at] + spoilt + raw[at + 1 :])


@pytest.mark.parametrize(
    ("raw", "reason", "field", "got", "remedy"),
    [
        pytest.param(
            None,
            Reason.NULL,
            "value",
            "null",
            "send a record; a turn is taken back by op delete",
            id="no-value",
        ),
        pytest.param(
            b'{"text": "\xff"}',
            Reason.NOT_UTF8,
            "value",
            "byte 10 is no UTF-8",
            "encode JSON as UTF-8",
            id="not-utf8",
        ),
        pytest.param(
            '"\ud800"'.encode("utf-8", "surrogatepass"),
            Reason.NOT_UTF8,
            "value",
            "byte 1 is no UTF-8",
            "encode JSON as UTF-8",
            id="surrogate-as-bytes",
        ),
        pytest.param(
            b"{", Reason.NOT_JSON, "value", "Input data was truncated", "send one JSON object", id="cut-off"
        ),
        pytest.param(
            b"", Reason.NOT_JSON, "value", "Input data was truncated", "send one JSON object", id="empty"
        ),
        pytest.param(
            b"\xef\xbb\xbf{}",
            Reason.NOT_JSON,
            "value",
            "JSON is malformed: invalid character (byte 0)",
            "send one JSON object",
            id="byte-order-mark",
        ),
        pytest.param(
            b'{"media": ' + NESTED,
            Reason.NOT_JSON,
            "value",
            "nested too deeply",
            "send a flat JSON object",
            id="nested",
        ),
        pytest.param(b"null", Reason.NOT_AN_OBJECT, "value", "null", "send one JSON object", id="null"),
        pytest.param(b"[]", Reason.NOT_AN_OBJECT, "value", "array", "send one JSON object", id="array"),
        pytest.param(b'"hi"', Reason.NOT_AN_OBJECT, "value", "str", "send one JSON object", id="string"),
        pytest.param(
            turn(text="\ud800"),
            Reason.LONE_SURROGATE,
            "value",
            "half of a surrogate pair",
            "send characters whole, as UTF-8",
            id="lone-surrogate-at-the-end",
        ),
        pytest.param(
            turn(conversation="\udc00 and more"),
            Reason.LONE_SURROGATE,
            "value",
            "half of a surrogate pair",
            "send characters whole, as UTF-8",
            id="lone-surrogate-at-the-start",
        ),
        pytest.param(turn(op="like"), Reason.UNKNOWN_OP, "op", "string 'like'", OPS, id="unknown-op"),
        pytest.param(
            b'{"op": "create", "op": "edit"}',
            Reason.INVALID_VALUE,
            "op",
            "string 'create'",
            "send op once",
            id="op-twice",
        ),
        pytest.param(turn(op=1), Reason.WRONG_TYPE, "op", "int", "send a string", id="op-of-wrong-type"),
        pytest.param(
            without("holder"), Reason.MISSING_FIELD, "holder", "missing", "add holder", id="missing-field"
        ),
        pytest.param(
            turn(media=[{"modality": "image"}, {}]),
            Reason.MISSING_FIELD,
            "media[1].modality",
            "missing",
            "add modality",
            id="missing-inner-field",
        ),
        pytest.param(
            turn(text=5), Reason.WRONG_TYPE, "text", "int", "send a string", id="text-of-wrong-type"
        ),
        pytest.param(
            turn(reply_to=5),
            Reason.WRONG_TYPE,
            "reply_to",
            "int",
            "send a string or null",
            id="optional-of-wrong-type",
        ),
        pytest.param(
            turn(revision=1.5),
            Reason.WRONG_TYPE,
            "revision",
            "float",
            "send an integer",
            id="fractional-revision",
        ),
        pytest.param(
            turn(media={}), Reason.WRONG_TYPE, "media", "object", "send an array", id="media-of-wrong-type"
        ),
        pytest.param(
            turn(media=[1]), Reason.WRONG_TYPE, "media[0]", "int", "send an object", id="medium-of-wrong-type"
        ),
        pytest.param(
            turn(sent_at=1_795_983_245),
            Reason.WRONG_TYPE,
            "sent_at",
            "int",
            "send a time as RFC 3339 string: 2026-11-29T20:14:05Z",
            id="time-as-number",
        ),
        pytest.param(
            turn(sent_at="2026-11-29T20:14:05"),
            Reason.NAIVE_TIME,
            "sent_at",
            "time without zone",
            RFC_3339,
            id="naive-time",
        ),
        pytest.param(
            override(expires_at="2026-11-29T20:14:05"),
            Reason.NAIVE_TIME,
            "expires_at",
            "time without zone",
            RFC_3339,
            id="naive-expiry",
        ),
        pytest.param(
            turn(sent_at="tomorrow"),
            Reason.INVALID_VALUE,
            "sent_at",
            "string that is no RFC 3339 time",
            RFC_3339,
            id="no-time",
        ),
        pytest.param(
            turn(text="猫" * (MAX_TEXT_BYTES // 3 + 1)),
            Reason.TOO_LONG,
            "text",
            "string of 16386 bytes",
            "at most 16384 bytes of UTF-8",
            id="text-over-16-kib",
        ),
        pytest.param(
            turn(text=""),
            Reason.EMPTY_TEXT,
            "text",
            "empty string",
            'text is "" only beside media',
            id="empty-text",
        ),
        pytest.param(
            turn(turn=""),
            Reason.INVALID_VALUE,
            "turn",
            "empty string",
            "send at least one character",
            id="empty-name",
        ),
        pytest.param(
            turn(revision=-1),
            Reason.INVALID_VALUE,
            "revision",
            "number below 0",
            "send at least 0",
            id="low-revision",
        ),
        pytest.param(
            turn(revision=2**53),
            Reason.INVALID_VALUE,
            "revision",
            "number above 9007199254740991",
            "send at most 9007199254740991",
            id="high-revision",
        ),
        pytest.param(
            turn(media=[{"modality": "image"}] * 9),
            Reason.INVALID_VALUE,
            "media",
            "array of more than 8 items",
            "send at most 8 items",
            id="nine-media",
        ),
        pytest.param(
            turn(holder_kind="robot"),
            Reason.INVALID_VALUE,
            "holder_kind",
            "string 'robot'",
            "one of user, bot, moderator, system",
            id="unknown-holder-kind",
        ),
        pytest.param(
            turn(media=[{"modality": "gif"}]),
            Reason.INVALID_VALUE,
            "media[0].modality",
            "string 'gif'",
            "one of image, meme, audio, video",
            id="unknown-modality",
        ),
        pytest.param(
            override(to="pro"),
            Reason.INVALID_VALUE,
            "to",
            "string 'pro'",
            "one of unknown, support, neutral, oppose",
            id="unknown-stance",
        ),
        pytest.param(
            json.dumps(
                {
                    "op": "target",
                    "conversation": "room",
                    "sent_at": "2026-11-29T20:14:05Z",
                    "id": "i",
                    "proposition": "p",
                    "status": "gone",
                }
            ).encode(),
            Reason.INVALID_VALUE,
            "status",
            "string 'gone'",
            "one of active, retired",
            id="unknown-status",
        ),
    ],
)
def test_each_bad_input_is_refused_in_its_own_words(
    raw: bytes | None, reason: Reason, field: str, got: str, remedy: str
) -> None:
    error = refused(raw)
    assert (error.reason, error.field, error.got, error.remedy) == (reason, field, got, remedy)


def test_a_word_with_a_path_inside_does_not_move_the_field() -> None:
    error = refused(override(to="x - at `$.secret`\n" + "y" * 100))
    assert error.field == "to"
    assert len(error.got) < 60


def test_an_escaped_backslash_is_no_surrogate() -> None:
    assert refused(b'{"text": "\\\\ud800').reason is Reason.NOT_JSON


def test_a_pair_of_surrogates_is_one_character() -> None:
    record = parse(turn(text="\U0001f62d"))
    assert isinstance(record, CreateTurn)
    assert record.text == "😭"


def test_a_line_without_op_is_a_turn() -> None:
    assert isinstance(parse(turn()), CreateTurn)
    assert isinstance(parse(turn(op="edit")), EditTurn)


def test_unknown_fields_are_left_unread() -> None:
    assert parse(turn(score=3, nested={"a": [1]})) == parse(turn())


def test_the_kafka_key_is_the_conversations() -> None:
    key = keys.conversation_key("default", "room")
    assert parse_keyed(key, turn()) == parse(turn())


@pytest.mark.parametrize(
    ("key", "got"), [(None, "no key"), (b"default/other", "key of 13 bytes"), (b"", "key of 0 bytes")]
)
def test_another_kafka_key_would_cost_the_order(key: bytes | None, got: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_keyed(key, turn())
    assert (caught.value.reason, caught.value.field, caught.value.got) == (Reason.WRONG_KEY, "key", got)


def test_other_shapes_are_refused_in_the_same_words() -> None:
    with pytest.raises(Refused) as caught:
        decode(b'{"a": "x"}', msgspec.json.Decoder(dict[str, int]))
    assert (caught.value.reason, caught.value.got, caught.value.remedy) == (
        Reason.WRONG_TYPE,
        "str",
        "send an integer",
    )
