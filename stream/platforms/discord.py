"""Discord: gateway dispatches, webhook events, and messages as its API lists them, one a line.

https://docs.discord.com/developers/events. A thread is a channel of its own. A gateway's deletion says no
time: it is taken at the receiver's, else at the deleted message's own. Webhook events come in any order: an
edit or a deletion waits for its message.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from stream.platforms import event_payloads
from stream.platforms.discord_messages import TURNS, Message, media, moment, sent_at, text
from stream.platforms.event_payloads import Result, converted, inner, results, whole
from stream.platforms.lines import Line, RawLine
from stream.platforms.sayings import UNSAID, Sayings
from tracker.records import CreateTurn, DeleteTurn, EditTurn, Name, Reason, Record, Refused

_DISPATCH, _WEBHOOK_EVENT = 0, 1
_PLACES = ("MESSAGE", "LOBBY_MESSAGE", "GAME_DIRECT_MESSAGE")
_CREATES, _UPDATES, _DELETES = (
    frozenset(f"{place}_{act}" for place in _PLACES) for act in ("CREATE", "UPDATE", "DELETE")
)
_BULK = "MESSAGE_DELETE_BULK"
_NAMES = {
    "turn": "id",
    "holder": "author.id",
    "conversation": "channel_id",
    "sent_at": "timestamp",
    "text": "content",
    "display_name": "author.username",
}


class _Bulk(msgspec.Struct):
    ids: list[Name]
    channel_id: Name


class _Event(msgspec.Struct):
    """An event out of its envelope."""

    kind: str
    data: dict[str, Any]
    at: dt.datetime | None  # when it was; None: nobody says


def recognises(fields: Collection[str]) -> bool:
    """Whether an object with these fields at its top is a dispatch, a webhook event or a message."""
    shapes = (("op", "d", "t"), ("version", "application_id", "type"), ("id", "channel_id", "author"))
    return any(all(field in fields for field in shape) for shape in shapes)


def read(lines: Iterable[RawLine], said: Sayings = UNSAID) -> Iterator[Line]:
    """What each line's event gives, in their order."""
    return event_payloads.read(lines, records)


def records(payload: Any, at: dt.datetime | None = None) -> Iterator[Result]:
    """The records of one payload, as decoded from JSON, received at that time; none of what is no message."""
    return results(_records(payload, at), _NAMES)


def _records(payload: Any, at: dt.datetime | None) -> Iterator[Record]:
    event = _event(whole(payload), at)
    if event is None:
        return
    if event.kind == _BULK:
        yield from _cleared(converted(event.data, _Bulk), event.at)
    elif event.kind in _DELETES:
        message = converted(event.data, Message)
        yield _deleted(message.id, _conversation(event, message), event.at)
    elif event.kind in _CREATES | _UPDATES:
        message = converted(event.data, Message)
        if message.type in TURNS:
            yield from _turn(event, message) if event.kind in _CREATES else _edit(event, message)


def _event(given: dict[str, Any], at: dt.datetime | None) -> _Event | None:
    """None of a heartbeat, a ping, or another object of Discord's."""
    if "op" in given:
        kind = given.get("t")
        is_wanted = given["op"] == _DISPATCH and _is_message(kind)
        return _Event(str(kind), inner(given, "d"), at) if is_wanted else None
    if "event" in given or "version" in given:
        event = inner(given, "event") if given.get("type") == _WEBHOOK_EVENT else {}
        if not _is_message(event.get("type")):
            return None
        written = event.get("timestamp")
        if not isinstance(written, str):
            raise Refused(Reason.WRONG_TYPE, "event.timestamp", "no string", "send a string")
        return _Event(event["type"], inner(event, "data"), moment("event.timestamp", written))
    return _Event("MESSAGE_CREATE", given, at)


def _is_message(kind: Any) -> bool:
    return isinstance(kind, str) and (kind == _BULK or kind in _CREATES | _UPDATES | _DELETES)


def _conversation(event: _Event, message: Message) -> str:
    """The channel, which a thread is, too; or the lobby, for its deletions name nothing else."""
    in_lobby = event.kind.startswith("LOBBY")
    found = message.lobby_id if in_lobby else message.channel_id
    if found is None:
        field = "lobby_id" if in_lobby else "channel_id"
        raise Refused(Reason.MISSING_FIELD, field, "missing", f"add {field}")
    return found


def _turn(event: _Event, message: Message) -> Iterator[Record]:
    author = message.author
    if author is None:
        raise Refused(Reason.MISSING_FIELD, "author", "missing", "add author")
    nick = message.member.nick if message.member else None
    yield CreateTurn(
        conversation=_conversation(event, message),
        sent_at=message.timestamp or sent_at("id", message.id),
        turn=message.id,
        holder=author.id,
        text=text(message),
        reply_to=message.reply(),
        holder_kind=message.kind(),
        display_name=nick or author.shown(),
        media=media(message),
    )


def _edit(event: _Event, message: Message) -> Iterator[Record]:
    """None where only what Discord adds has changed: a link's preview, a pin, a thread."""
    edited = event.at if message.edited_timestamp is msgspec.UNSET else message.edited_timestamp
    if edited is None or message.content is msgspec.UNSET:
        return
    yield EditTurn(
        conversation=_conversation(event, message), sent_at=edited, turn=message.id, text=text(message)
    )


def _cleared(bulk: _Bulk, at: dt.datetime | None) -> Iterator[Record]:
    return iter([_deleted(each, bulk.channel_id, at) for each in bulk.ids])


def _deleted(message: str, conversation: str, at: dt.datetime | None) -> Record:
    return DeleteTurn(conversation=conversation, sent_at=at or sent_at("id", message), turn=message)
