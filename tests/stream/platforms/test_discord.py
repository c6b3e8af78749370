"""Discord: gateway dispatches, webhook events, listed messages; what is silent, and bad payloads."""

import datetime as dt
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.platforms import Line, discord
from stream.platforms.lines import raw_lines
from tests.stream.platforms.mutations import SAMPLES, changed_bytes, changed_json, encoded
from tests.stream.platforms.round_trips import taken
from tracker.records import (
    CreateTurn,
    DeleteTurn,
    EditTurn,
    HolderKind,
    Reason,
    Refused,
    record_id,
    revision_of,
)

GATEWAY, WEBHOOK = SAMPLES / "discord" / "gateway.jsonl", SAMPLES / "discord" / "webhook.jsonl"
FIRST, SECOND = "1555127127760699393", "1555127379418939394"
EIGHT = dt.datetime(2026, 10, 1, 8, tzinfo=dt.UTC)
MESSAGE = {
    "id": FIRST,
    "type": 0,
    "channel_id": "700",
    "author": {"id": "11", "username": "ada"},
    "content": "+1 the bridge",
    "timestamp": "2026-10-01T08:00:00.123000+00:00",
    "edited_timestamp": None,
}


def lines_of(raw: bytes) -> list[Line]:
    return list(discord.read(raw_lines(io.BytesIO(raw))))


def message(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in (MESSAGE | fields).items() if value is not ...}


def dispatch(kind: str, data: Any) -> dict[str, Any]:
    return {"op": 0, "s": 1, "t": kind, "d": data}


def webhook(kind: str, data: Any, **event: Any) -> dict[str, Any]:
    event = {"type": kind, "timestamp": "2026-10-01T08:00:00.000000", "data": data} | event
    return {"version": 1, "application_id": "44", "type": 1, "event": event}


def records(payload: Any, at: dt.datetime | None = None) -> list[Any]:
    return list(discord.records(payload, at))


def one(kind: str = "MESSAGE_CREATE", **fields: Any) -> Any:
    (record,) = records(dispatch(kind, message(**fields)))
    return record


def test_the_gateways_dispatches() -> None:
    assert [(line.number, type(line.result)) for line in lines_of(GATEWAY.read_bytes())] == [
        (2, CreateTurn), (3, CreateTurn), (4, EditTurn), (7, CreateTurn), (8, Refused),
        (9, DeleteTurn), (10, DeleteTurn), (10, DeleteTurn),
    ]  # fmt: skip


def test_webhook_events() -> None:
    lines = lines_of(WEBHOOK.read_bytes())
    found = [(line.number, type(line.result)) for line in lines]
    assert found == [(2, CreateTurn), (3, EditTurn), (4, DeleteTurn), (5, EditTurn)]
    lobby = {line.result.conversation for line in lines[:3] if not isinstance(line.result, Refused)}
    assert lobby == {"80"}  # the deletion names no channel


def test_a_turn_and_its_reply() -> None:
    turn, reply = (line.result for line in lines_of(GATEWAY.read_bytes())[:2])
    assert isinstance(turn, CreateTurn) and isinstance(reply, CreateTurn)
    assert (turn.turn, turn.holder, turn.conversation, turn.tenant) == (FIRST, "11", "700", "default")
    assert (turn.text, turn.display_name) == ("+1 the bridge, @Mara :wave:", "Ada of the quay")
    assert (reply.reply_to, reply.display_name, len(reply.media)) == (FIRST, "mara", 2)
    assert turn.sent_at == dt.datetime(2026, 10, 1, 8, 0, 0, 123000, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("fields", "reply_to"),
    [
        ({"referenced_message": {"id": SECOND}}, SECOND),
        ({}, SECOND),  # Discord did not look it up
        ({"referenced_message": None}, None),  # deleted
        ({"message_reference": {"message_id": SECOND, "channel_id": "9"}}, None),  # another channel's
        ({"message_reference": {}}, None),
        ({"message_reference": None}, None),
        ({"type": 0}, None),  # a forward, or one that is followed
    ],
)
def test_what_a_reply_answers(fields: dict[str, Any], reply_to: str | None) -> None:
    reply: dict[str, Any] = {"type": 19, "message_reference": {"message_id": SECOND, "channel_id": "700"}}
    assert one(**(reply | fields)).reply_to == reply_to


def test_an_edit_is_numbered_by_discords_own_time() -> None:
    edit = one("MESSAGE_UPDATE", content="-1 never", edited_timestamp="2026-10-01T08:02:00.250000+00:00")
    assert (edit.turn, edit.text, revision_of(edit)) == (FIRST, "-1 never", 1_790_841_720_250)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"edited_timestamp": ..., "timestamp": ...},
        {"content": ..., "edited_timestamp": "2026-10-01T08:02:00Z"},
        {"type": 7},
    ],
)
def test_an_update_that_is_no_edit(fields: dict[str, Any]) -> None:
    assert records(dispatch("MESSAGE_UPDATE", message(**fields))) == []


def test_a_deletion_is_at_the_receivers_time_else_at_the_messages() -> None:
    payload = dispatch("MESSAGE_DELETE", {"id": FIRST, "channel_id": "700"})
    (gone,), (later,) = records(payload), records(payload, EIGHT)
    assert (gone.turn, gone.conversation) == (FIRST, "700")
    assert (gone.sent_at, later.sent_at) == (dt.datetime(2026, 10, 1, 8, 0, 0, 123000, dt.UTC), EIGHT)
    assert record_id(gone) == record_id(later)


def test_a_deletion_of_many_is_one_for_each() -> None:
    bulk = {"ids": [FIRST, SECOND], "channel_id": "700"}
    assert [gone.turn for gone in records(dispatch("MESSAGE_DELETE_BULK", bulk))] == [FIRST, SECOND]
    assert records(dispatch("MESSAGE_DELETE_BULK", bulk | {"ids": []})) == []
    (refused,) = records(dispatch("MESSAGE_DELETE_BULK", bulk | {"ids": [FIRST, "x"]}))
    assert refused.field == "id"  # all or none: the refused payload is sent again whole


def test_a_webhooks_author_is_no_user() -> None:
    turn = one(webhook_id="55", author={"id": "55", "username": "tide"})
    assert (turn.holder, turn.holder_kind) == ("55", HolderKind.BOT)


def test_a_listed_message_is_a_turn() -> None:
    assert records(message()) == records(dispatch("MESSAGE_CREATE", message()))


def test_a_lobbys_message_without_a_time_has_its_ids() -> None:
    (turn,) = records(webhook("LOBBY_MESSAGE_CREATE", message(lobby_id="80", timestamp=...)))
    assert turn.sent_at == dt.datetime(2026, 10, 1, 8, 0, 0, 123000, tzinfo=dt.UTC)


def test_an_event_that_says_no_time_of_an_edit_is_the_edits() -> None:
    (edit,) = records(webhook("GAME_DIRECT_MESSAGE_UPDATE", message(edited_timestamp=...)))
    assert edit.sent_at == EIGHT


def test_the_same_payload_again_gives_the_same_records() -> None:
    raw = GATEWAY.read_bytes() + WEBHOOK.read_bytes()
    assert str(lines_of(raw)) == str(lines_of(raw))


@pytest.mark.parametrize("kind", [1, 6, 7, 18, 20, 21, 23, 24, 46])
def test_rows_that_nobody_wrote(kind: int) -> None:
    assert records(dispatch("MESSAGE_CREATE", message(type=kind, content=""))) == []


@pytest.mark.parametrize(
    "payload",
    [
        {"op": 10, "d": {"heartbeat_interval": 1}, "s": None, "t": None},
        {"op": 11},
        {"op": None, "t": "MESSAGE_CREATE", "d": 7},
        dispatch("TYPING_START", {"user_id": 7}),
        dispatch("MESSAGE_REACTION_ADD", {"message_id": FIRST}),
        {"version": 1, "application_id": "44", "type": 0},
        webhook("APPLICATION_AUTHORIZED", {"user": {}}),
        webhook("ENTITLEMENT_CREATE", None),
    ],
)
def test_what_is_no_message(payload: Any) -> None:
    assert records(payload) == []


@pytest.mark.parametrize(
    ("fields", "reason", "field"),
    [
        ({"id": 7}, Reason.WRONG_TYPE, "id"),
        ({"id": ...}, Reason.MISSING_FIELD, "id"),
        ({"id": "x", "timestamp": ...}, Reason.INVALID_VALUE, "id"),
        ({"channel_id": ...}, Reason.MISSING_FIELD, "channel_id"),
        ({"channel_id": ""}, Reason.INVALID_VALUE, "channel_id"),
        ({"author": ...}, Reason.MISSING_FIELD, "author"),
        ({"author": {"id": 11}}, Reason.WRONG_TYPE, "author.id"),
        ({"author": {}}, Reason.MISSING_FIELD, "author.id"),
        ({"content": ""}, Reason.EMPTY_TEXT, "content"),
        ({"content": 7.5}, Reason.WRONG_TYPE, "content"),
        ({"content": "é" * 9000}, Reason.TOO_LONG, "content"),
        ({"timestamp": "2026-10-01T08:00:00"}, Reason.NAIVE_TIME, "timestamp"),
        ({"timestamp": 1790841600}, Reason.WRONG_TYPE, "timestamp"),
        ({"type": "0"}, Reason.WRONG_TYPE, "type"),
        ({"attachments": [7]}, Reason.WRONG_TYPE, "attachments[0]"),
        ({"member": {"nick": 7}}, Reason.WRONG_TYPE, "member.nick"),
    ],
)
def test_bad_messages_are_refused_by_field(fields: dict[str, Any], reason: Reason, field: str) -> None:
    refused = one(**fields)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.field) == (reason, field)


@pytest.mark.parametrize(
    ("payload", "reason", "field"),
    [
        ("x", Reason.NOT_AN_OBJECT, "value"),
        ({"op": 0, "t": "MESSAGE_CREATE"}, Reason.MISSING_FIELD, "d"),
        (dispatch("MESSAGE_DELETE", None), Reason.WRONG_TYPE, "d"),
        (dispatch("MESSAGE_DELETE", {"id": FIRST}), Reason.MISSING_FIELD, "channel_id"),
        (dispatch("MESSAGE_DELETE", {"id": "x", "channel_id": "7"}), Reason.INVALID_VALUE, "id"),
        (dispatch("MESSAGE_DELETE_BULK", {"ids": [7], "channel_id": "7"}), Reason.WRONG_TYPE, "ids[0]"),
        ({"version": 1, "type": 1}, Reason.MISSING_FIELD, "event"),
        (webhook("LOBBY_MESSAGE_CREATE", message()), Reason.MISSING_FIELD, "lobby_id"),
        (webhook("LOBBY_MESSAGE_CREATE", 7), Reason.WRONG_TYPE, "data"),
        (webhook("LOBBY_MESSAGE_DELETE", {}, timestamp=7), Reason.WRONG_TYPE, "event.timestamp"),
        (webhook("LOBBY_MESSAGE_DELETE", {}, timestamp="x"), Reason.INVALID_VALUE, "event.timestamp"),
    ],
)
def test_bad_envelopes(payload: Any, reason: Reason, field: str) -> None:
    (refused,) = records(payload)
    assert (refused.reason, refused.field) == (reason, field)


def test_it_is_known_by_its_fields() -> None:
    for path in (GATEWAY, WEBHOOK):
        assert all(discord.recognises(frozenset(json.loads(line))) for line in path.read_text().splitlines())
    assert discord.recognises(frozenset(MESSAGE))
    assert not discord.recognises(frozenset({"op", "conversation", "sent_at", "turn"}))


@given(changed_bytes(GATEWAY.read_bytes()))
def test_no_bytes_break_it(raw: bytes) -> None:
    taken(lines_of(raw))


@given(st.data())
def test_no_values_break_it(data: st.DataObject) -> None:
    rows = [line for path in (GATEWAY, WEBHOOK) for line in path.read_text().splitlines()]
    row = json.loads(data.draw(st.sampled_from(rows)))
    changed = data.draw(changed_json(row))
    taken([Line(1, result) for result in discord.records(changed)])
    taken(lines_of(encoded(changed)))
