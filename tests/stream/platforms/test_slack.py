"""Slack's events: turns, threads, edits and deletions, bots, what is silent, and bad events."""

import datetime as dt
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.platforms import Line, slack
from stream.platforms.lines import raw_lines
from tests.stream.platforms.mutations import SAMPLES, changed_bytes, changed_json, encoded
from tests.stream.platforms.round_trips import taken
from tracker.records import (
    CreateTurn,
    DeleteTurn,
    EditTurn,
    HolderKind,
    Media,
    Modality,
    Reason,
    Refused,
    encode,
    record_id,
    revision_of,
)

EVENTS = SAMPLES / "slack" / "events.jsonl"
TS, LATER = "1790841600.000100", "1790841700.000200"
MESSAGE = {"type": "message", "channel": "C01", "user": "U01", "ts": TS, "text": "+1 the bridge"}


def lines_of(raw: bytes) -> list[Line]:
    return list(slack.read(raw_lines(io.BytesIO(raw))))


def event(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in (MESSAGE | fields).items() if value is not ...}


def body(inner: Any) -> dict[str, Any]:
    return {"type": "event_callback", "team_id": "T01", "event_id": "Ev1", "event": inner}


def records(payload: Any) -> list[Any]:
    return list(slack.records(payload))


def one(**fields: Any) -> Any:
    (record,) = records(body(event(**fields)))
    return record


def changed(before: Any = ..., **message: Any) -> list[Any]:
    fields = {"before": {"text": "+1 the bridge", "ts": TS}} if before is ... else {"before": before}
    new = event(channel=..., text="-1 never", edited={"user": "U01", "ts": "1790841650.000000"}, **message)
    previous = {} if fields["before"] is None else {"previous_message": fields["before"]}
    return records(
        body(
            {"type": "message", "subtype": "message_changed", "channel": "C01", "ts": LATER, "message": new}
            | previous
        )
    )


def test_bodies_envelopes_and_bare_events() -> None:
    found = [(line.number, type(line.result)) for line in lines_of(EVENTS.read_bytes())]
    assert found == [
        (1, CreateTurn), (2, CreateTurn), (3, CreateTurn), (4, EditTurn), (5, DeleteTurn),
        (6, CreateTurn), (8, Refused), (11, CreateTurn),
    ]  # fmt: skip


def test_a_turn() -> None:
    turn = lines_of(EVENTS.read_bytes())[0].result
    assert isinstance(turn, CreateTurn)
    assert (turn.turn, turn.holder, turn.conversation, turn.tenant) == (TS, "U01", "C01", "default")
    assert turn.text == "+1 the bridge & the quay, @mara, see the plan"
    assert turn.sent_at == dt.datetime(2026, 10, 1, 8, 0, 0, 100, tzinfo=dt.UTC)  # exact, not through a float


def test_a_thread_is_a_conversation_and_its_root_the_channels() -> None:
    assert one(thread_ts=TS).conversation == "C01"
    reply = one(ts=LATER, thread_ts=TS)
    assert (reply.conversation, reply.reply_to) == (f"C01/{TS}", None)


def test_a_broadcast_reply_is_one_turn_of_its_thread() -> None:
    assert one(subtype="thread_broadcast", ts=LATER, thread_ts=TS).conversation == f"C01/{TS}"


def test_the_same_event_again_gives_the_same_records() -> None:
    raw = EVENTS.read_bytes()
    once, again = ([str(line.result) for line in lines_of(raw)] for _ in range(2))
    assert once == again
    bare, enveloped = records(event()), records({"envelope_id": "e", "payload": body(event())})
    assert [encode(record) for record in bare] == [encode(record) for record in enveloped]


def test_an_edit_is_numbered_by_slacks_own_time() -> None:
    (edit,) = changed()
    assert isinstance(edit, EditTurn)
    assert (edit.turn, edit.text, revision_of(edit)) == (TS, "-1 never", 1_790_841_700_000)
    (in_thread,) = changed(ts=LATER, thread_ts=TS)
    assert in_thread.conversation == f"C01/{TS}"


def test_edits_within_one_second_are_two() -> None:
    news = {"type": "message", "subtype": "message_changed", "channel": "C01"}
    message = event(edited={"ts": "1790841700.000000"})
    first, second = (records(news | {"ts": ts, "message": message})[0] for ts in (LATER, "1790841700.500000"))
    assert record_id(first) != record_id(second)
    assert revision_of(first) < revision_of(second)


def test_a_change_that_is_no_edit() -> None:
    assert changed(before=event(text="-1 never")) == []  # a link was unfolded
    assert changed(before=None, subtype="channel_topic") == []
    news = {"type": "message", "subtype": "message_changed", "channel": "C01", "ts": LATER}
    assert records(news | {"message": event()}) == []  # nobody says that it was edited


def test_what_is_left_of_a_deleted_root_is_a_deletion() -> None:
    (gone,) = changed(subtype="tombstone", user="USLACKBOT", thread_ts=TS)
    assert (type(gone), gone.turn, gone.conversation) == (DeleteTurn, TS, "C01")


def test_a_deletion_needs_no_holder() -> None:
    fields = {
        "type": "message",
        "subtype": "message_deleted",
        "channel": "C01",
        "ts": LATER,
        "deleted_ts": TS,
    }
    (gone,) = records(fields)
    assert (gone.turn, gone.conversation, gone.sent_at.second) == (TS, "C01", 40)
    (reply,) = records(fields | {"previous_message": {"ts": TS, "thread_ts": "1.0"}})
    assert reply.conversation == "C01/1.0"


@pytest.mark.parametrize(
    ("fields", "holder", "name"),
    [
        ({"subtype": "bot_message", "user": ..., "bot_id": "B01", "username": "tide"}, "B01", "tide"),
        ({"bot_id": "B01", "bot_profile": {"name": "Tide"}}, "U01", "Tide"),
        ({"subtype": "bot_message", "user": ..., "bot_id": None, "username": "tide"}, "tide", "tide"),
        ({"user": "USLACKBOT"}, "USLACKBOT", None),
    ],
)
def test_bots(fields: dict[str, Any], holder: str, name: str | None) -> None:
    turn = one(**fields)
    assert (turn.holder, turn.holder_kind, turn.display_name) == (holder, HolderKind.BOT, name)


def test_a_persons_name_where_it_is_given() -> None:
    turn = one(user_profile={"display_name": "", "real_name": "Ada Quay"})
    assert (turn.display_name, turn.holder_kind) == ("Ada Quay", HolderKind.USER)


def test_files_that_are_media() -> None:
    turn = lines_of(EVENTS.read_bytes())[-1].result
    assert isinstance(turn, CreateTurn)
    uri = "https://example.slack.com/files/U01/F1/a.png"
    assert turn.media == (Media(Modality.IMAGE, uri, "image/png", "a crowded quay"),)
    assert len(one(files=[{"mimetype": "image/png"}] * 12).media) == 8


@pytest.mark.parametrize(
    "subtype", ["channel_join", "channel_topic", "message_replied", "pinned_item", "tombstone", "unheard_of"]
)
def test_rows_that_nobody_wrote(subtype: str) -> None:
    assert records(body(event(subtype=subtype, user=...))) == []


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "url_verification", "challenge": "c"},
        {"type": "app_rate_limited", "team_id": "T01"},
        {"type": "hello"},
        {"envelope_id": "e", "type": "disconnect"},
        body({"type": "user_change", "user": {"id": "U01"}}),
        body({"type": "app_mention", "user": "U01", "text": "twice otherwise", "ts": TS, "channel": "C01"}),
    ],
)
def test_what_is_no_message(payload: Any) -> None:
    assert records(payload) == []


@pytest.mark.parametrize(
    "fields", [{"user": "UREVOKEDU"}, {"subtype": "ekm_access_denied", "user": "UREVOKEDU"}]
)
def test_a_user_who_may_not_be_shown_is_told(fields: dict[str, Any]) -> None:
    refused = one(**fields)
    assert (refused.reason, refused.field) == (Reason.INVALID_VALUE, "user")
    (edit,) = changed(user="UREVOKEDU")
    assert edit.field == "user"


@pytest.mark.parametrize(
    ("fields", "reason", "field"),
    [
        ({"ts": 1790841600.0001}, Reason.WRONG_TYPE, "ts"),
        ({"ts": None}, Reason.WRONG_TYPE, "ts"),
        ({"ts": ...}, Reason.MISSING_FIELD, "ts"),
        ({"ts": ""}, Reason.INVALID_VALUE, "ts"),
        ({"ts": "soon"}, Reason.INVALID_VALUE, "ts"),
        ({"ts": "١.٠"}, Reason.INVALID_VALUE, "ts"),
        ({"channel": None}, Reason.MISSING_FIELD, "channel"),
        ({"channel": 7}, Reason.WRONG_TYPE, "channel"),
        ({"user": ...}, Reason.MISSING_FIELD, "user"),
        ({"user": {"id": "U01"}}, Reason.WRONG_TYPE, "user"),
        ({"text": ...}, Reason.EMPTY_TEXT, "text"),
        ({"text": ["x"]}, Reason.WRONG_TYPE, "text"),
        ({"text": "é" * 9000}, Reason.TOO_LONG, "text"),
        ({"thread_ts": 7}, Reason.WRONG_TYPE, "thread_ts"),
        ({"files": [{"mimetype": 7}]}, Reason.WRONG_TYPE, "files[0].mimetype"),
        ({"subtype": "message_changed"}, Reason.MISSING_FIELD, "message"),
        ({"subtype": "message_deleted"}, Reason.MISSING_FIELD, "deleted_ts"),
        ({"subtype": "message_deleted", "deleted_ts": 7}, Reason.WRONG_TYPE, "deleted_ts"),
    ],
)
def test_bad_events_are_refused_by_field(fields: dict[str, Any], reason: Reason, field: str) -> None:
    refused = one(**fields)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.field) == (reason, field)


@pytest.mark.parametrize(
    ("payload", "reason", "field"),
    [
        ([], Reason.NOT_AN_OBJECT, "value"),
        ({"type": "event_callback"}, Reason.MISSING_FIELD, "event"),
        ({"type": "event_callback", "event": "x"}, Reason.WRONG_TYPE, "event"),
        ({"envelope_id": "e", "payload": None}, Reason.WRONG_TYPE, "payload"),
    ],
)
def test_bad_envelopes(payload: Any, reason: Reason, field: str) -> None:
    (refused,) = records(payload)
    assert (refused.reason, refused.field) == (reason, field)


def test_a_refusal_repeats_no_words() -> None:
    assert "secret" not in str(one(ts="secret")) + str(one(user="secret", files="secret"))


def test_it_is_known_by_its_fields() -> None:
    for row in (json.loads(line) for line in EVENTS.read_text().splitlines()):
        assert slack.recognises(frozenset(row)) or row.get("type") == "url_verification"
    assert not slack.recognises(frozenset({"type", "room_id", "sender", "content", "event_id"}))
    assert not slack.recognises(frozenset({"subscription", "event"}))


@given(changed_bytes(EVENTS.read_bytes()))
def test_no_bytes_break_it(raw: bytes) -> None:
    taken(lines_of(raw))


@given(st.data())
def test_no_values_break_it(data: st.DataObject) -> None:
    row = json.loads(data.draw(st.sampled_from(EVENTS.read_text().splitlines())))
    changed = data.draw(changed_json(row))
    taken([Line(1, result) for result in slack.records(changed)])
    taken(lines_of(encoded(changed)))
