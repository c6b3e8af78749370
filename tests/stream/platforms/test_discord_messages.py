"""What Discord's messages say, and when ids and events were."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from stream.platforms.discord_messages import Message, media, moment, sent_at, text
from tracker.records import HolderKind, Media, Modality, Reason, Refused


def message(**fields: Any) -> Message:
    return msgspec.convert({"id": "1", **fields}, Message)


def test_an_ids_time() -> None:
    # The example of Discord's own reference on snowflakes.
    expected = dt.datetime(2016, 4, 30, 11, 18, 25, 796000, tzinfo=dt.UTC)
    assert sent_at("id", "175928847299117063") == expected


@pytest.mark.parametrize(
    "ident", ["", "x", "-1", "١", "18446744073709551616", "9" * 400, "0" * 21 + "9" * 99]
)
def test_what_is_no_id(ident: str) -> None:
    with pytest.raises(Refused) as raised:
        sent_at("id", ident)
    assert (raised.value.reason, raised.value.field) == (Reason.INVALID_VALUE, "id")


def test_an_events_time_is_utc_without_saying_so() -> None:
    at = dt.datetime(2026, 10, 1, 8, 0, tzinfo=dt.UTC)
    assert moment("x", "2026-10-01T08:00:00.000000") == moment("x", "2026-10-01T08:00:00+00:00") == at
    with pytest.raises(Refused, match="no time"):
        moment("x", "soon")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"content": "hi", "embeds": [{"title": "a preview"}]}, "hi"),
        ({"embeds": [{"title": "a", "description": "b"}, {}]}, "a\nb"),
        ({"poll": {"question": {"text": "Bridge?"}, "answers": []}}, "Bridge?"),
        ({"message_snapshots": [{"message": {"content": "one\n<:wave:5>"}}]}, "> one\n> :wave:"),
        ({"content": None, "sticker_items": [{"name": "duck"}]}, ""),
    ],
)
def test_what_a_message_says(fields: dict[str, Any], said: str) -> None:
    assert text(message(**fields)) == said


@pytest.mark.parametrize("content", [..., None, "", " \n"])
def test_an_empty_message_tells_of_the_intent(content: Any) -> None:
    with pytest.raises(Refused, match="MESSAGE_CONTENT") as raised:
        text(message(**({} if content is ... else {"content": content})))
    assert raised.value.reason == Reason.EMPTY_TEXT


def test_media_its_own_and_what_it_forwards() -> None:
    voice = {"url": "https://cdn.example.org/v.ogg", "content_type": "audio/ogg"}
    named = {"url": "https://cdn.example.org/a.png", "filename": "a.png", "description": "a quay"}
    found = media(
        message(
            attachments=[named, {"filename": "a.pdf"}],
            message_snapshots=[{"message": {"attachments": [voice]}}],
        )
    )
    assert found == (
        Media(Modality.IMAGE, "https://cdn.example.org/a.png", None, "a quay"),
        Media(Modality.AUDIO, "https://cdn.example.org/v.ogg", "audio/ogg"),
    )
    assert len(media(message(sticker_items=[{"name": "duck"}] * 12))) == 8


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"author": {"id": "1"}}, HolderKind.USER),
        ({"author": {"id": "1", "bot": True}}, HolderKind.BOT),
        ({"author": {"id": "1", "system": True, "bot": True}}, HolderKind.SYSTEM),
        ({"author": {"id": "5"}, "webhook_id": "5"}, HolderKind.BOT),
        ({}, HolderKind.USER),
    ],
)
def test_who_wrote_it(fields: dict[str, Any], kind: HolderKind) -> None:
    assert message(**fields).kind() == kind
