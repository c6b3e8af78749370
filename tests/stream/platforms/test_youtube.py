"""YouTube's live chat: turns, deletions by moderators, bans, what is silent, and bad items."""

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream.platforms import Line, open_records, youtube
from stream.platforms.lines import raw_lines
from stream.platforms.sayings import UNSAID, Sayings
from tests.stream.platforms.mutations import SAMPLES, changed_bytes, changed_json, encoded, sound
from tracker.records import ClearTurns, CreateTurn, DeleteTurn, HolderKind, Media, Modality, Reason, Refused

LIST = SAMPLES / "youtube" / "list.jsonl"
RESPONSE = json.loads(LIST.read_text().splitlines()[0])
ITEM = RESPONSE["items"][0]
BANNED = "snippet.userBannedDetails"


def read(*rows: Any, said: Sayings = UNSAID) -> list[Any]:
    raw = b"\n".join(map(encoded, rows))
    return [line.result for line in youtube.read(raw_lines(io.BytesIO(raw)), said)]


def item(kind: str = "textMessageEvent", **snippet: Any) -> dict[str, Any]:
    merged = ITEM["snippet"] | {"type": kind} | snippet
    return ITEM | {"snippet": {key: value for key, value in merged.items() if value is not ...}}


def test_a_responses_items_and_single_ones() -> None:
    lines = list(open_records(LIST))
    kinds = [(line.number, type(line.result)) for line in lines]
    assert kinds == [
        (1, CreateTurn), (1, CreateTurn), (1, CreateTurn), (1, CreateTurn),
        (2, DeleteTurn), (3, ClearTurns), (4, DeleteTurn), (6, DeleteTurn), (7, Refused),
    ]  # fmt: skip
    assert {line.result.conversation for line in lines if not isinstance(line.result, Refused)} == {"chat-1"}


def test_words_and_stickers_of_those_who_pay() -> None:
    text, chat, sticker, owner = read(RESPONSE)
    assert (text.text, text.holder, text.display_name) == ("+1 the bridge", "UCmara", "Mara")
    assert chat.text == "-1 never"  # not YouTube's sentence about it
    assert (sticker.text, sticker.media) == (
        "",
        (Media(modality=Modality.MEME, description="A duck that shakes its head"),),
    )
    assert (owner.holder, owner.holder_kind) == ("UCowner", HolderKind.MODERATOR)


def test_paying_without_words_is_no_turn() -> None:
    assert read(item("superChatEvent", superChatDetails={"amountMicros": "1"})) == []
    assert (
        read(item("memberMilestoneChatEvent", memberMilestoneChatDetails={"userComment": "7"}))[0].text == "7"
    )


def test_a_deletion_names_a_moderator_who_is_no_holder() -> None:
    deleted, banned, retracted = (line.result for line in open_records(LIST) if line.number in (2, 3, 4))
    assert isinstance(deleted, DeleteTurn) and isinstance(retracted, DeleteTurn)
    assert (deleted.turn, retracted.turn) == ("LCC.b", "LCC.a")
    assert isinstance(banned, ClearTurns)
    assert (banned.holder, banned.id) == ("UCfan", "LCC.f")


@pytest.mark.parametrize(
    "kind",
    [
        "chatEndedEvent",
        "newSponsorEvent",
        "giftEvent",
        "pollEvent",
        "sponsorOnlyModeStartedEvent",
        "unheardOf",
    ],
)
def test_rows_that_nobody_wrote(kind: str) -> None:
    assert read(item(kind)) == []


def test_a_tombstone_takes_its_message_back() -> None:
    (gone,) = read(item("tombstone", authorChannelId=..., displayMessage=...))
    assert (type(gone), gone.turn) == (DeleteTurn, ITEM["id"])


def test_a_holder_may_stand_in_the_authors_details_alone() -> None:
    (turn,) = read(item(authorChannelId=...))
    assert turn.holder == "UCmara"
    (refused,) = read(
        {key: value for key, value in item(authorChannelId="").items() if key != "authorDetails"}
    )
    assert (refused.reason, refused.field) == (Reason.MISSING_FIELD, "snippet.authorChannelId")


def test_a_chats_id_that_is_missing_is_asked_for() -> None:
    (refused,) = read(item(liveChatId=...))
    assert (refused.field, "--conversation" in refused.remedy) == ("snippet.liveChatId", True)
    assert read(item(liveChatId=...), said=Sayings(conversation="live"))[0].conversation == "live"


@pytest.mark.parametrize(
    ("row", "reason", "field"),
    [
        (item(publishedAt="soon"), Reason.INVALID_VALUE, "snippet.publishedAt"),
        (item(publishedAt="2026-10-05T19:00:01"), Reason.NAIVE_TIME, "snippet.publishedAt"),
        (item(textMessageDetails={"messageText": ""}), Reason.EMPTY_TEXT, "snippet.displayMessage"),
        (item(textMessageDetails=7), Reason.WRONG_TYPE, "snippet.textMessageDetails"),
        (item("messageDeletedEvent"), Reason.MISSING_FIELD, "snippet.messageDeletedDetails"),
        (item("userBannedEvent", userBannedDetails={}), Reason.MISSING_FIELD, f"{BANNED}.bannedUserDetails"),
        (ITEM | {"id": ""}, Reason.INVALID_VALUE, "id"),
        ({"items": 7}, Reason.WRONG_TYPE, "items"),
        ({"items": ["x"]}, Reason.NOT_AN_OBJECT, "value"),
        ([], Reason.NOT_AN_OBJECT, "value"),
    ],
)  # fmt: skip
def test_bad_items_are_refused_by_field_and_the_next_is_read(row: Any, reason: Reason, field: str) -> None:
    first, second = read(row, ITEM)
    assert (first.reason, first.field) == (reason, field)
    assert isinstance(second, CreateTurn)


@pytest.mark.parametrize("indent", [2, None])
@pytest.mark.parametrize(
    "document", [RESPONSE, [RESPONSE], RESPONSE["items"]], ids=["one", "several", "items"]
)
def test_a_document_over_many_lines_is_the_same(document: Any, indent: int | None) -> None:
    raw = json.dumps(document, indent=indent).encode()
    assert [line.result for line in open_records(io.BytesIO(raw))] == read(RESPONSE)


def lines_of(raw: bytes) -> list[Line]:
    return list(youtube.read(raw_lines(io.BytesIO(raw))))


@settings(deadline=None)  # a busy machine is no fault
@given(changed_bytes(LIST.read_bytes()))
def test_no_bytes_break_it(raw: bytes) -> None:
    sound(lines_of(raw))
    sound(list(youtube.read_document(io.BytesIO(raw))))


@settings(deadline=None)  # a busy machine is no fault
@given(st.data())
def test_no_values_break_it(data: st.DataObject) -> None:
    rows = [json.loads(line) for line in LIST.read_text().splitlines()]
    sound(lines_of(b"\n".join(map(encoded, data.draw(changed_json(rows))))))
