"""Twitch's EventSub: notifications as its WebSocket sends them, one a line.

https://dev.twitch.tv/docs/eventsub. An event names no time and no id of its own: its envelope does. A
webhook has them in its headers: `enveloped` makes of its body what a WebSocket would have sent. A
notification may come twice: it gives the same records again.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from stream.platforms import event_payloads
from stream.platforms.event_payloads import Result, converted, inner, results, whole
from stream.platforms.lines import Line, RawLine
from stream.platforms.sayings import UNSAID, Sayings
from stream.platforms.twitch_chat import kind_of, words
from tracker import keys
from tracker.records import ClearTurns, CreateTurn, DeleteTurn, Name, Reason, Record, Refused, Time

_HEADER = "twitch-eventsub-message-"
_NOTIFICATION = "notification"
_MESSAGE, _NOTICE = "channel.chat.message", "channel.chat.notification"
_DELETE, _CLEAR = "channel.chat.message_delete", "channel.chat.clear"
_CLEAR_ONE = "channel.chat.clear_user_messages"
_TYPES = frozenset({_MESSAGE, _NOTICE, _DELETE, _CLEAR, _CLEAR_ONE})
_NAMES = {
    "turn": "message_id",
    "holder": "chatter_user_id",
    "conversation": "broadcaster_user_id",
    "sent_at": "message_timestamp",
    "text": "message.text",
    "display_name": "chatter_user_name",
}


class _Metadata(msgspec.Struct):
    message_id: Name
    message_timestamp: Time


class _Text(msgspec.Struct):
    text: str


class _Badge(msgspec.Struct):
    set_id: str


class _Reply(msgspec.Struct):
    parent_message_id: Name
    parent_user_name: str | None = None


class _Room(msgspec.Struct):
    broadcaster_user_id: Name


class _Chat(_Room):
    message_id: Name
    message: _Text
    chatter_user_id: Name | None = None
    chatter_user_name: str | None = None
    badges: list[_Badge] | None = None
    reply: _Reply | None = None


class _Deleted(_Room):
    message_id: Name


class _Cleared(_Room):
    target_user_id: Name


def recognises(fields: Collection[str]) -> bool:
    """Whether an object with these fields at its top is a WebSocket's message, or a webhook's body."""
    return any(
        all(field in fields for field in pair)
        for pair in (("metadata", "payload"), ("subscription", "event"))
    )


def enveloped(headers: Mapping[str, str], body: Any) -> dict[str, Any]:
    """A webhook's body as a WebSocket would have sent it, by the headers whose signature was checked."""
    given = {name.lower(): value for name, value in headers.items()}
    names = ("message_id", "message_type", "message_timestamp")
    found = {name: given.get(_HEADER + name.removeprefix("message_")) for name in names}
    return {"metadata": {name: value for name, value in found.items() if value is not None}, "payload": body}


def read(lines: Iterable[RawLine], said: Sayings = UNSAID) -> Iterator[Line]:
    """What each line's notification gives, in their order."""
    return event_payloads.read(lines, records)


def records(payload: Any) -> Iterator[Result]:
    """The records of one WebSocket message, as decoded from JSON; none of what is no chat."""
    return results(_records(payload), _NAMES)


def _records(payload: Any) -> Iterator[Record]:
    given = whole(payload)
    if "metadata" not in given and "subscription" in given:
        remedy = "store the headers' id and timestamp beside the body: twitch_eventsub.enveloped does"
        raise Refused(Reason.MISSING_FIELD, "metadata", "webhook's body without its headers", remedy)
    metadata = inner(given, "metadata")
    if metadata.get("message_type") != _NOTIFICATION:
        return
    notification = inner(given, "payload")
    kind = inner(notification, "subscription").get("type")
    if isinstance(kind, str) and kind in _TYPES:
        yield from _of(kind, notification.get("event"), converted(metadata, _Metadata))


def _of(kind: str, event: Any, metadata: _Metadata) -> Iterator[Record]:
    at = metadata.message_timestamp
    if kind in (_MESSAGE, _NOTICE):
        chat = converted(event, _Chat)
        if kind == _MESSAGE or chat.message.text.strip():
            yield _turn(chat, metadata)
    elif kind == _DELETE:
        gone = converted(event, _Deleted)
        yield DeleteTurn(conversation=gone.broadcaster_user_id, sent_at=at, turn=gone.message_id)
    else:
        room = converted(event, _Cleared if kind == _CLEAR_ONE else _Room)
        yield ClearTurns(
            conversation=room.broadcaster_user_id,
            sent_at=at,
            id=keys.joined("clear", metadata.message_id),
            holder=room.target_user_id if isinstance(room, _Cleared) else None,
        )


def _turn(chat: _Chat, metadata: _Metadata) -> CreateTurn:
    if chat.chatter_user_id is None:
        raise Refused(Reason.MISSING_FIELD, "chatter_user_id", "missing", "add chatter_user_id")
    return CreateTurn(
        conversation=chat.broadcaster_user_id,
        sent_at=metadata.message_timestamp,
        turn=chat.message_id,
        holder=chat.chatter_user_id,
        text=words(chat.message.text, chat.reply.parent_user_name if chat.reply else None),
        reply_to=chat.reply.parent_message_id if chat.reply else None,
        holder_kind=kind_of(badge.set_id for badge in chat.badges or ()),
        display_name=chat.chatter_user_name,
    )
