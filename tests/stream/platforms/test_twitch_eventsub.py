"""Twitch's EventSub: turns, deletions, clears, webhooks' headers, what is silent, and bad payloads."""

import datetime as dt
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.platforms import Line, twitch_eventsub, twitch_irc
from stream.platforms.lines import raw_lines
from tests.stream.platforms.mutations import SAMPLES, changed_bytes, changed_json, encoded
from tests.stream.platforms.round_trips import taken
from tracker.records import ClearTurns, CreateTurn, DeleteTurn, HolderKind, Reason, Refused, record_id

NOTIFICATIONS, IRC = SAMPLES / "twitch" / "eventsub.jsonl", SAMPLES / "twitch" / "irc.txt"
ROWS = [json.loads(line) for line in NOTIFICATIONS.read_text().splitlines()]
CHAT, CLEAR_ONE, CLEAR = ROWS[1], ROWS[6], ROWS[7]


def lines_of(raw: bytes) -> list[Line]:
    return list(twitch_eventsub.read(raw_lines(io.BytesIO(raw))))


def records(payload: Any) -> list[Any]:
    return list(twitch_eventsub.records(payload))


def notification(
    row: Any = CHAT, metadata: Any = ..., subscription: Any = ..., **event: Any
) -> dict[str, Any]:
    merged = row["payload"]["event"] | event
    payload = row["payload"] | {"event": {key: value for key, value in merged.items() if value is not ...}}
    payload |= {} if subscription is ... else {"subscription": subscription}
    meta = row["metadata"] if metadata is ... else metadata
    return {"metadata": meta, "payload": payload}


def test_the_websockets_messages() -> None:
    assert [(line.number, type(line.result)) for line in lines_of(NOTIFICATIONS.read_bytes())] == [
        (2, CreateTurn), (3, CreateTurn), (4, CreateTurn), (6, DeleteTurn), (7, ClearTurns), (8, ClearTurns),
    ]  # fmt: skip


def test_turns() -> None:
    first, reply, resub = (records(row)[0] for row in ROWS[1:4])
    assert (first.turn, first.holder, first.conversation, first.display_name) == ("a1", "11", "500", "Ada")
    assert first.sent_at == dt.datetime(2026, 10, 1, 8, 1, 0, 123457, tzinfo=dt.UTC)
    assert (reply.reply_to, reply.holder_kind) == ("a1", HolderKind.MODERATOR)
    assert reply.text == "-1 never"
    assert (resub.text, resub.holder_kind) == ("+0 undecided", HolderKind.USER)


def test_a_message_is_the_same_turn_as_in_irc() -> None:
    irc = next(twitch_irc.read(raw_lines(io.BytesIO(IRC.read_bytes())))).result
    (turn,) = records(CHAT)
    assert isinstance(irc, CreateTurn)
    assert (irc.conversation, irc.turn, irc.holder, record_id(irc)) == (
        turn.conversation, turn.turn, turn.holder, record_id(turn),
    )  # fmt: skip


def test_clears_have_the_envelopes_id() -> None:
    (one,), (everybody,) = records(CLEAR_ONE), records(CLEAR)
    assert (one.holder, everybody.holder) == ("12", None)
    assert records(CLEAR) == [everybody]
    assert record_id(one) != record_id(everybody)


def test_a_webhooks_headers_make_the_envelope() -> None:
    headers = {
        "Twitch-Eventsub-Message-Id": CHAT["metadata"]["message_id"],
        "twitch-eventsub-message-type": "notification",
        "TWITCH-EVENTSUB-MESSAGE-TIMESTAMP": CHAT["metadata"]["message_timestamp"],
    }
    assert records(twitch_eventsub.enveloped(headers, CHAT["payload"])) == records(CHAT)
    (refused,) = records(
        twitch_eventsub.enveloped(headers | {"Twitch-Eventsub-Message-Id": ""}, CHAT["payload"])
    )
    assert refused.field == "message_id"
    challenge = headers | {"twitch-eventsub-message-type": "webhook_callback_verification"}
    assert records(twitch_eventsub.enveloped(challenge, {"challenge": "c", "subscription": {}})) == []


def test_a_body_without_its_headers_is_told_how_to_be_stored() -> None:
    (refused,) = records(CHAT["payload"])
    assert (refused.reason, refused.field, "enveloped" in refused.remedy) == (
        Reason.MISSING_FIELD,
        "metadata",
        True,
    )


@pytest.mark.parametrize(
    "payload",
    [
        {"metadata": {"message_type": "session_reconnect"}, "payload": {}},
        {
            "metadata": {"message_type": "revocation"},
            "payload": {"subscription": {"type": "channel.chat.clear"}},
        },
        {"metadata": {}},
        notification(subscription={"type": "channel.update"}),
        notification(subscription={"type": 7}),
        notification(subscription={}),
    ],
)
def test_what_is_no_chat(payload: Any) -> None:
    assert records(payload) == []


@pytest.mark.parametrize(
    ("event", "reason", "field"),
    [
        ({"message_id": 7}, Reason.WRONG_TYPE, "message_id"),
        ({"message_id": ""}, Reason.INVALID_VALUE, "message_id"),
        ({"broadcaster_user_id": ...}, Reason.MISSING_FIELD, "broadcaster_user_id"),
        ({"chatter_user_id": None}, Reason.MISSING_FIELD, "chatter_user_id"),
        ({"chatter_user_id": 11.5}, Reason.WRONG_TYPE, "chatter_user_id"),
        ({"message": ...}, Reason.MISSING_FIELD, "message"),
        ({"message": {"fragments": []}}, Reason.MISSING_FIELD, "message.text"),
        ({"message": {"text": ""}}, Reason.EMPTY_TEXT, "message.text"),
        ({"message": {"text": "é" * 9000}}, Reason.TOO_LONG, "message.text"),
        ({"badges": [{}]}, Reason.MISSING_FIELD, "badges[0].set_id"),
        ({"reply": {}}, Reason.MISSING_FIELD, "reply.parent_message_id"),
    ],
)
def test_bad_events_are_refused_by_field(event: dict[str, Any], reason: Reason, field: str) -> None:
    (refused,) = records(notification(**event))
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.field) == (reason, field)


@pytest.mark.parametrize(
    ("payload", "reason", "field"),
    [
        ([], Reason.NOT_AN_OBJECT, "value"),
        ({}, Reason.MISSING_FIELD, "metadata"),
        ({"metadata": None}, Reason.WRONG_TYPE, "metadata"),
        ({"metadata": {"message_type": "notification"}}, Reason.MISSING_FIELD, "payload"),
        (notification(subscription=None), Reason.WRONG_TYPE, "subscription"),
        (notification(metadata={"message_type": "notification"}), Reason.MISSING_FIELD, "message_id"),
        (notification(CLEAR_ONE, target_user_id=...), Reason.MISSING_FIELD, "target_user_id"),
        (notification(CLEAR_ONE, target_user_id=""), Reason.INVALID_VALUE, "target_user_id"),
        (
            notification(metadata=CHAT["metadata"] | {"message_timestamp": "2026-10-01T08:00:00"}),
            Reason.NAIVE_TIME,
            "message_timestamp",
        ),
    ],
)
def test_bad_envelopes(payload: Any, reason: Reason, field: str) -> None:
    (refused,) = records(payload)
    assert (refused.reason, refused.field) == (reason, field)


def test_it_is_known_by_its_fields() -> None:
    assert all(twitch_eventsub.recognises(frozenset(row)) for row in ROWS)
    assert twitch_eventsub.recognises(frozenset(CHAT["payload"]))
    assert not twitch_eventsub.recognises(frozenset({"type", "event", "team_id"}))


@given(changed_bytes(NOTIFICATIONS.read_bytes()))
def test_no_bytes_break_it(raw: bytes) -> None:
    taken(lines_of(raw))


@given(st.data())
def test_no_values_break_it(data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(ROWS))
    changed = data.draw(changed_json(row))
    taken([Line(1, result) for result in twitch_eventsub.records(changed)])
    taken(lines_of(encoded(changed)))
