"""ConvoKit's form: its older and newer names, its times, and what it leaves of deleted turns."""

import datetime as dt
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.platforms import convokit
from stream.platforms.lines import raw_lines
from tracker.records import CreateTurn, Reason, Refused

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NEWER = {
    "id": "t1_b",
    "speaker": "ada",
    "conversation_id": "t3_a",
    "text": "hello",
    "timestamp": 1_400_000_000,
    "reply-to": "t3_a",
    "meta": {"score": 3},
}
OLDER = {
    "id": "t1_b",
    "user": "ada",
    "root": "t3_a",
    "text": "hello",
    "timestamp": "1400000000",
    "reply-to": "t3_a",
}


def row(**fields: Any) -> dict[str, Any]:
    return NEWER | fields


def read(*rows: Any) -> list[Any]:
    raw = b"\n".join(json.dumps(each).encode() for each in rows)
    return [line.result for line in convokit.read(raw_lines(io.BytesIO(raw)))]


@pytest.mark.parametrize(
    "given_row",
    [
        NEWER,
        OLDER,
        row(speaker={"id": "ada", "meta": {}}),
        row(speaker=None, user={"name": "ada"}),
        {key: value for key, value in NEWER.items() if key != "reply-to"} | {"reply_to": "t3_a"},
        row(timestamp=1_400_000_000.0),
        row(timestamp="1400000000.0"),
        row(timestamp="2014-05-13T16:53:20Z"),
        row(timestamp="2014-05-13 18:53:20+02:00"),
    ],
    ids=[
        "newer",
        "older",
        "speaker-object",
        "user-object",
        "reply_to",
        "float",
        "string",
        "rfc3339",
        "offset",
    ],
)
def test_every_spelling_is_the_same_turn(given_row: dict[str, Any]) -> None:
    assert read(given_row) == [
        CreateTurn(
            conversation="t3_a",
            sent_at=dt.datetime(2014, 5, 13, 16, 53, 20, tzinfo=dt.UTC),
            turn="t1_b",
            holder="ada",
            text="hello",
            reply_to="t3_a",
        )
    ]


def test_numbers_are_names_too() -> None:
    (turn,) = read(row(id=7, speaker=3, conversation_id=1, **{"reply-to": 6}))
    assert (turn.turn, turn.holder, turn.conversation, turn.reply_to) == ("7", "3", "1", "6")


def test_an_empty_reply_is_none() -> None:
    assert [turn.reply_to for turn in read(row(**{"reply-to": None}), row(**{"reply-to": ""}))] == [
        None,
        None,
    ]


def test_a_missing_time_is_a_second_after_the_last_of_its_conversation() -> None:
    rows = [row(id=str(n), conversation_id=name, timestamp=None) for n, name in enumerate("abaab")]
    assert [turn.sent_at - EPOCH for turn in read(*rows)] == [
        dt.timedelta(seconds=s) for s in (0, 0, 1, 2, 1)
    ]


def test_a_missing_time_between_others_is_not_late() -> None:
    times = [
        turn.sent_at for turn in read(row(id="1"), row(id="2", timestamp=None), row(id="3", timestamp=""))
    ]
    assert times == sorted(times)
    assert times[2] - times[0] == dt.timedelta(seconds=2)


def test_no_time_leaves_the_calendar() -> None:
    times = [
        turn.sent_at for turn in read(row(timestamp="9999-12-31T23:59:59.5Z"), row(id="2", timestamp=None))
    ]
    assert times[1] >= times[0] - dt.timedelta(seconds=1)


@pytest.mark.parametrize("header", [{"is_section_header": True}, {"meta": {"is_section_header": True}}])
def test_section_headers_are_no_turns(header: dict[str, Any]) -> None:
    assert read(row(**header), row(id="2", is_section_header=False, meta=None))[0].turn == "2"


@pytest.mark.parametrize(
    ("wrong", "reason", "field"),
    [
        (row(text=""), Reason.EMPTY_TEXT, "text"),
        (row(text=None), Reason.EMPTY_TEXT, "text"),
        (row(text="[deleted]"), Reason.EMPTY_TEXT, "text"),
        (row(text=" [removed]\n"), Reason.EMPTY_TEXT, "text"),
        (row(speaker="[deleted]"), Reason.INVALID_VALUE, "speaker"),
        (row(speaker=None), Reason.MISSING_FIELD, "speaker"),
        (row(speaker={}), Reason.MISSING_FIELD, "speaker"),
        (row(speaker=[]), Reason.WRONG_TYPE, "speaker"),
        (row(speaker="x" * 513), Reason.TOO_LONG, "speaker"),
        (row(conversation_id=None), Reason.MISSING_FIELD, "conversation_id"),
        (row(conversation_id="x" * 513), Reason.TOO_LONG, "conversation_id"),
        (row(id=""), Reason.MISSING_FIELD, "id"),
        ({"speaker": "ada"}, Reason.MISSING_FIELD, "id"),
        (row(timestamp="2014-05-13 16:53:20"), Reason.NAIVE_TIME, "timestamp"),
        (row(timestamp="yesterday"), Reason.INVALID_VALUE, "timestamp"),
        (row(timestamp="nan"), Reason.INVALID_VALUE, "timestamp"),
        (row(timestamp="1e300"), Reason.INVALID_VALUE, "timestamp"),
        (row(timestamp=1e18), Reason.INVALID_VALUE, "timestamp"),
        (row(timestamp=10**400), Reason.INVALID_VALUE, "timestamp"),
        (row(timestamp=[]), Reason.WRONG_TYPE, "timestamp"),
        (row(text="x" * 16_385), Reason.TOO_LONG, "text"),
        ([], Reason.NOT_AN_OBJECT, "value"),
    ],
)
def test_a_wrong_row_is_refused_by_its_own_name_for_the_field(wrong: Any, reason: Reason, field: str) -> None:
    error, turn = read(wrong, row(id="next"))
    assert isinstance(error, Refused)
    assert (error.reason, error.field) == (reason, field)
    assert error.remedy
    assert turn.turn == "next"


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "name", "a"]), inner),
    max_leaves=4,
)


@given(
    st.dictionaries(
        st.sampled_from([*NEWER, *OLDER, "is_section_header", "reply_to"]), json_values, max_size=3
    )
)
def test_any_row_is_read_refused_or_a_header(fields: dict[str, Any]) -> None:
    assert all(isinstance(result, CreateTurn | Refused) for result in read(row(**fields)))
