"""YouTube's live chat: what `liveChatMessages.list` and `streamList` answer, a response or an item a line.

Field names of the YouTube Data API v3. A deletion's author is the moderator who deleted, not the holder. A
tombstone says that its message is gone; it, a poll, a gift or the chat's end are no turns.
"""

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, TypeVar

import msgspec

from stream.platforms.documents import events, items
from stream.platforms.lines import Line, RawLine, checked
from stream.platforms.sayings import UNSAID, Sayings
from tracker.parsing import decode, refusal
from tracker.records import (
    ClearTurns,
    CreateTurn,
    DeleteTurn,
    HolderKind,
    Media,
    Modality,
    Name,
    Reason,
    Record,
    Refused,
    Time,
)

T = TypeVar("T")

_PAID = {"superChatEvent", "memberMilestoneChatEvent", "fanFundingEvent"}  # their comment is optional
_TYPES = {"textMessageEvent", "superStickerEvent", *_PAID}
_NAMES = {
    "conversation": "snippet.liveChatId",
    "sent_at": "snippet.publishedAt",
    "turn": "id",
    "holder": "snippet.authorChannelId",
    "text": "snippet.displayMessage",
    "display_name": "authorDetails.displayName",
}


class _Deleted(msgspec.Struct, rename="camel"):
    deleted_message_id: Name


class _Retracted(msgspec.Struct, rename="camel"):
    retracted_message_id: Name


class _User(msgspec.Struct, rename="camel"):
    channel_id: Name


class _Banned(msgspec.Struct, rename="camel"):
    banned_user_details: _User


class _Text(msgspec.Struct, rename="camel"):
    message_text: str = ""


class _Comment(msgspec.Struct, rename="camel"):
    user_comment: str = ""


class _StickerMetadata(msgspec.Struct, rename="camel"):
    alt_text: str | None = None


class _Sticker(msgspec.Struct, rename="camel"):
    super_sticker_metadata: _StickerMetadata | None = None


class _Snippet(msgspec.Struct, rename="camel"):
    type: str
    published_at: Time
    live_chat_id: Name | None = None
    author_channel_id: str | None = None
    display_message: str | None = None
    text_message_details: _Text | None = None
    super_chat_details: _Comment | None = None
    fan_funding_event_details: _Comment | None = None
    member_milestone_chat_details: _Comment | None = None
    super_sticker_details: _Sticker | None = None
    message_deleted_details: _Deleted | None = None
    message_retracted_details: _Retracted | None = None
    user_banned_details: _Banned | None = None


class _Author(msgspec.Struct, rename="camel"):
    channel_id: str | None = None
    display_name: str | None = None
    is_chat_owner: bool = False
    is_chat_moderator: bool = False


class _Item(msgspec.Struct, rename="camel"):
    id: Name
    snippet: _Snippet
    author_details: _Author | None = None


_OBJECT = msgspec.json.Decoder(dict[str, Any])


def recognises(fields: dict[str, Any]) -> bool:
    """Whether an object with these fields at its top is a response or an item."""
    return (
        str(fields.get("kind", "")).startswith("youtube#liveChatMessage")
        or {"id", "snippet"} <= fields.keys()
    )


def read(lines: Iterable[RawLine], said: Sayings = UNSAID) -> Iterator[Line]:
    """What each line's items give, in their order."""
    for line in lines:
        try:
            content = decode(_given(line.content), _OBJECT)
        except Refused as refused:
            yield Line(line.number, refused)
            continue
        yield from (Line(line.number, result) for result in _results(content, said))


def read_document(stream: BinaryIO, said: Sayings = UNSAID) -> Iterator[Line]:
    """As `read`, of responses that are written over many lines; numbers count items. Raises OSError."""
    number = 0
    wanted = frozenset({"items.item", "item"}).__contains__
    try:
        for _, item in items(events(stream), wanted, lambda part: None):
            number += 1
            yield from (Line(number, result) for result in _results(item, said))
    except Refused as refused:
        yield Line(number + 1, refused)


def _given(content: bytes | Refused) -> bytes:
    if isinstance(content, Refused):
        raise content
    return content


def _results(content: dict[str, Any], said: Sayings) -> Iterator[Record | Refused]:
    if "snippet" in content or "items" not in content:
        yield from _result(content, said)
    elif isinstance(content["items"], list):
        for item in content["items"]:
            yield from _result(item, said)
    else:
        yield Refused(Reason.WRONG_TYPE, "items", "no array", "send an array")


def _result(content: Any, said: Sayings) -> Iterator[Record | Refused]:
    try:
        item = msgspec.convert(content, _Item)
        record = _record(item, item.snippet, item.snippet.live_chat_id or said.conversation)
        if record is not None:
            yield checked(record, _NAMES)
    except msgspec.ValidationError as error:
        yield refusal(error)
    except Refused as refused:
        yield refused


def _record(item: _Item, snippet: _Snippet, conversation: str | None) -> Record | None:
    if conversation is None:
        remedy = "add it, or name the chat with --conversation"
        raise Refused(Reason.MISSING_FIELD, "snippet.liveChatId", "missing", remedy)
    sent_at = snippet.published_at
    if snippet.type == "messageDeletedEvent":
        deleted = _details("messageDeletedDetails", snippet.message_deleted_details)
        return DeleteTurn(conversation=conversation, sent_at=sent_at, turn=deleted.deleted_message_id)
    if snippet.type == "messageRetractedEvent":
        retracted = _details("messageRetractedDetails", snippet.message_retracted_details)
        return DeleteTurn(conversation=conversation, sent_at=sent_at, turn=retracted.retracted_message_id)
    if snippet.type == "tombstone":
        return DeleteTurn(conversation=conversation, sent_at=sent_at, turn=item.id)
    if snippet.type == "userBannedEvent":
        banned = _details("userBannedDetails", snippet.user_banned_details)
        holder = banned.banned_user_details.channel_id
        return ClearTurns(conversation=conversation, sent_at=sent_at, id=item.id, holder=holder)
    if snippet.type not in _TYPES:
        return None
    turn = _turn(item, snippet, conversation)
    return None if snippet.type in _PAID and not turn.text and not turn.media else turn


def _details(field: str, details: T | None) -> T:
    if details is None:
        raise Refused(Reason.MISSING_FIELD, f"snippet.{field}", "missing", f"add {field}")
    return details


def _turn(item: _Item, snippet: _Snippet, conversation: str) -> CreateTurn:
    author = item.author_details or _Author()
    holder = snippet.author_channel_id or author.channel_id
    if not holder:
        remedy = "ask for part=snippet,authorDetails"
        raise Refused(Reason.MISSING_FIELD, "snippet.authorChannelId", "missing", remedy)
    moderates = author.is_chat_owner or author.is_chat_moderator
    return CreateTurn(
        conversation=conversation,
        sent_at=snippet.published_at,
        turn=item.id,
        holder=holder,
        text=_text(snippet),
        holder_kind=HolderKind.MODERATOR if moderates else HolderKind.USER,
        display_name=author.display_name,
        media=_sticker(snippet.super_sticker_details),
    )


def _text(snippet: _Snippet) -> str:
    """What the person wrote: a display text may be YouTube's own sentence about it."""
    if snippet.type == "textMessageEvent":
        details = snippet.text_message_details
        return details.message_text if details else snippet.display_message or ""
    comment = (
        snippet.super_chat_details
        or snippet.fan_funding_event_details
        or snippet.member_milestone_chat_details
    )
    return comment.user_comment if comment else ""


def _sticker(details: _Sticker | None) -> tuple[Media, ...]:
    if details is None:
        return ()
    metadata = details.super_sticker_metadata or _StickerMetadata()
    return (Media(modality=Modality.MEME, description=metadata.alt_text),)
