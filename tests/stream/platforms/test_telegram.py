"""Telegram's export: one chat and a whole account, its quirks, and how bad messages are refused."""

import datetime as dt
import io
import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream.platforms import Line, open_records, telegram
from stream.platforms.sayings import UNSAID, Sayings
from tests.stream.platforms.mutations import SAMPLES, changed_bytes, changed_json, encoded, sound
from tracker.records import CreateTurn, HolderKind, Media, Modality, Reason, Refused

CHAT, ACCOUNT = SAMPLES / "telegram" / "chat.json", SAMPLES / "telegram" / "account.json"
MESSAGE = {
    "id": 2,
    "type": "message",
    "date": "2026-10-01T08:01:00",
    "date_unixtime": "1790841660",
    "from": "Ines",
    "from_id": "user11",
    "text": "hello",
}


def export(*messages: Any, **chat: Any) -> bytes:
    return json.dumps(
        {"name": "Quay", "type": "private_group", "id": 5, **chat, "messages": messages}
    ).encode()


def read(raw: bytes, said: Sayings = UNSAID) -> list[Line]:
    return list(telegram.read(io.BytesIO(raw), said))


def one(said: Sayings = UNSAID, chat: dict[str, Any] | None = None, **fields: Any) -> Any:
    message = {key: value for key, value in (MESSAGE | fields).items() if value is not ...}
    (line,) = read(export(message, **(chat or {})), said)
    return line.result


def turns(lines: list[Line]) -> list[CreateTurn]:
    return [line.result for line in lines if isinstance(line.result, CreateTurn)]


def test_a_chats_turns() -> None:
    lines = list(open_records(CHAT))
    assert [turn.turn for turn in turns(lines)] == ["2", "3", "4", "5", "6", "8"]
    assert {turn.conversation for turn in turns(lines)} == {"channel4711"}
    assert [line.number for line in lines] == [2, 3, 4, 5, 6, 7, 8, 9]  # the first is a service row
    refused = [(line.number, line.result.reason) for line in lines if isinstance(line.result, Refused)]
    assert refused == [(7, Reason.EMPTY_TEXT), (9, Reason.EMPTY_TEXT)]


def test_text_is_an_array_and_a_deleted_accounts_name_is_null() -> None:
    turn = turns(list(open_records(CHAT)))[1]
    assert turn.text == "-1 see the plan, page\x0b 4"
    assert (turn.holder, turn.display_name, turn.reply_to) == ("user12", None, "2")
    assert turn.sent_at == dt.datetime(2026, 10, 1, 8, 2, tzinfo=dt.UTC)


def test_a_forwarded_message_is_quoted() -> None:
    turn = turns(list(open_records(CHAT)))[2]
    assert (turn.holder, turn.text) == ("channel90", "> The quay is\n> closed on Sunday")
    assert one(forwarded_from=None).text == "> hello"  # a hidden or deleted author


def test_media() -> None:
    sticker, photo = turns(list(open_records(CHAT)))[3:5]
    assert sticker.media == (Media(modality=Modality.MEME, description="👎"),)
    assert sticker.reply_to is None  # it answers another chat's message
    assert photo.text == "look at the queue"
    assert photo.media == (Media(modality=Modality.IMAGE, uri="photos/photo_1@01-10-2026_08-06-00.jpg"),)


@pytest.mark.parametrize(
    ("fields", "modality"),
    [
        ({"media_type": "voice_message", "mime_type": "audio/ogg"}, Modality.AUDIO),
        ({"media_type": "audio_file", "mime_type": "audio/mpeg"}, Modality.AUDIO),
        ({"media_type": "video_message", "mime_type": "video/mp4"}, Modality.VIDEO),
        ({"media_type": "video_file", "mime_type": "video/mp4"}, Modality.VIDEO),
        ({"media_type": "animation", "mime_type": "video/mp4"}, Modality.VIDEO),
        ({"media_type": "sticker"}, Modality.MEME),
        ({"mime_type": "image/png"}, Modality.IMAGE),
    ],
)
def test_kinds_of_media(fields: dict[str, str], modality: Modality) -> None:
    turn = one(text="", file="files/a", **fields)
    assert [(media.modality, media.uri) for media in turn.media] == [(modality, "files/a")]


def test_a_document_is_no_media() -> None:
    assert one(file="a.pdf", mime_type="application/pdf").media == ()
    assert one(text="", file="a.pdf", mime_type="application/pdf").reason == Reason.EMPTY_TEXT


def test_a_whole_account() -> None:
    found = turns(list(open_records(ACCOUNT)))
    assert [(turn.conversation, turn.holder, turn.holder_kind) for turn in found] == [
        ("user12", "user12", HolderKind.USER),
        ("user70", "user11", HolderKind.USER),
        ("user70", "user70", HolderKind.BOT),
        ("channel90", "channel90", HolderKind.USER),  # a channel's post without an author's id
        ("channel90", "user11", HolderKind.USER),  # an id as exports before 2021 wrote it
    ]


def test_old_dates_are_local() -> None:
    berlin = Sayings(zone=ZoneInfo("Europe/Berlin"))
    assert [turn.sent_at.hour for turn in turns(list(open_records(ACCOUNT, said=berlin)))[3:]] == [7, 7]
    assert one(berlin, date_unixtime=...).sent_at.hour == 6
    assert one(berlin).sent_at.hour == 8  # a moment needs no zone
    assert one(berlin, date_unixtime=..., date="2026-10-01T08:01:00+00:00").sent_at.hour == 8


@pytest.mark.parametrize(
    ("fields", "reason", "field"),
    [
        ({"from_id": ...}, Reason.MISSING_FIELD, "from_id"),
        ({"from_id": None, "from": None}, Reason.MISSING_FIELD, "from_id"),
        ({"from_id": []}, Reason.WRONG_TYPE, "from_id"),
        ({"id": ...}, Reason.MISSING_FIELD, "id"),
        ({"id": "x"}, Reason.WRONG_TYPE, "id"),
        ({"text": {"text": "x"}}, Reason.WRONG_TYPE, "text"),
        ({"text": [1]}, Reason.WRONG_TYPE, "text[0]"),
        ({"text": ""}, Reason.EMPTY_TEXT, "text"),
        ({"text": "é" * 9000}, Reason.TOO_LONG, "text"),
        ({"from": "x" * 600}, Reason.TOO_LONG, "from"),
        ({"date_unixtime": "soon"}, Reason.INVALID_VALUE, "date_unixtime"),
        ({"date_unixtime": "9" * 30}, Reason.INVALID_VALUE, "date_unixtime"),
        ({"date_unixtime": "9" * 9000}, Reason.INVALID_VALUE, "date_unixtime"),
        ({"date_unixtime": ..., "date": "yesterday"}, Reason.INVALID_VALUE, "date"),
        ({"date_unixtime": ..., "date": ...}, Reason.MISSING_FIELD, "date"),
    ],
)
def test_a_bad_message_is_refused_by_its_field_and_the_next_is_read(
    fields: dict[str, Any], reason: Reason, field: str
) -> None:
    bad = {key: value for key, value in (MESSAGE | fields).items() if value is not ...}
    first, second = read(export(bad, MESSAGE))
    assert isinstance(first.result, Refused)
    assert (first.result.reason, first.result.field) == (reason, field)
    assert isinstance(second.result, CreateTurn)


def test_messages_without_their_chats_id() -> None:
    raw = json.dumps({"messages": [MESSAGE], "id": 5}).encode()
    (line,) = read(raw)
    assert isinstance(line.result, Refused)
    assert (line.result.field, "--conversation" in line.result.remedy) == ("chat id", True)
    assert turns(read(raw, Sayings(conversation="quay")))[0].conversation == "quay"


def test_an_export_that_breaks_off_gives_what_stands_before() -> None:
    raw = export(MESSAGE, MESSAGE | {"id": 3})
    lines = read(raw[:-30])
    assert [type(line.result) for line in lines] == [CreateTurn, Refused]
    assert [line.number for line in lines] == [1, 2]


def test_it_is_the_same_twice() -> None:
    assert turns(list(open_records(CHAT))) == turns(list(open_records(CHAT)))


@settings(deadline=None)  # a busy machine is no fault
@given(changed_bytes(CHAT.read_bytes()) | changed_bytes(ACCOUNT.read_bytes()))
def test_no_bytes_break_it(raw: bytes) -> None:
    sound(read(raw))


@settings(deadline=None)  # a busy machine is no fault
@given(st.data())
def test_no_values_break_it(data: st.DataObject) -> None:
    whole = json.loads(ACCOUNT.read_bytes())
    sound(read(encoded(data.draw(changed_json(whole)))))
    sound(read(export(data.draw(changed_json(MESSAGE)))))
