"""Matrix: events of `/sync`, of `/messages`, of an application service's transactions, and of an export.

A line is an event or one of these answers; a client's export is one document. An event may come several
times, through several APIs. An edit counts only of the original's sender; it waits for an original that
comes later.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import msgspec

from stream.platforms import documents
from stream.platforms.lines import Line, RawLine, checked
from stream.platforms.matrix_events import ENCRYPTED, MESSAGE, REDACTION, STICKER, Event, media, text
from stream.platforms.recent import Recent
from stream.platforms.sayings import UNSAID, Sayings
from stream.platforms.times import since_epoch
from tracker import keys
from tracker.parsing import decode, refusal
from tracker.records import CreateTurn, DeleteTurn, EditTurn, HolderKind, Reason, Record, Refused

_KINDS = frozenset({MESSAGE, STICKER, REDACTION, ENCRYPTED})
_ROWS = frozenset({"m.server_notice", "m.key.verification.request"})  # messages that nobody wrote
_LISTS = ("events", "chunk", "messages")  # of a transaction, of `/messages`, of an export
_NAMES = {
    "turn": "event_id",
    "holder": "sender",
    "sent_at": "origin_server_ts",
    "text": "content.body",
    "conversation": "room_id",
}
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_MILLISECOND = dt.timedelta(milliseconds=1)
_EARLY_ORIGINALS, _EARLY_EDITS = 4096, 16  # events that are awaited, and edits kept of each
_TIMELINE = ".timeline.events.item"

Result = Record | Refused


class _Seen(msgspec.Struct, frozen=True):
    """What is kept of an event: enough to judge what relates to it."""

    sender: str
    conversation: str
    is_edit: bool = False


class Timeline:
    """The rooms' events in the order they come, as records; memory is bounded by the events kept of last."""

    def __init__(self, said: Sayings = UNSAID) -> None:
        self._said = said
        self._seen: Recent[_Seen] = Recent()
        self._early: Recent[tuple[Event, ...]] = Recent(_EARLY_ORIGINALS)

    def take(self, room: str | None, given: Any) -> Iterator[Result]:
        """What an event gives; the room is the surrounding object's, where the event names none."""
        kind = given.get("type") if isinstance(given, dict) else None
        if isinstance(kind, str) and (kind not in _KINDS or "state_key" in given):
            return
        try:
            yield from self._of(msgspec.convert(given, Event), room)
        except msgspec.ValidationError as error:
            yield refusal(error)
        except Refused as refused:
            yield refused
        except RecursionError:
            yield Refused(
                Reason.NOT_JSON, "content", "nested too deeply", "send the event as the server does"
            )

    def _of(self, event: Event, room: str | None) -> Iterator[Result]:
        room = event.room_id or room or self._said.conversation
        if room is None:
            remedy = "send the whole /sync answer, or name the room with --conversation"
            raise Refused(Reason.MISSING_FIELD, "room_id", "missing", remedy)
        if event.is_redacted() or event.content.msgtype in _ROWS or self._seen.get((room, event.event_id)):
            return
        if event.type == ENCRYPTED:
            remedy = "export it from a client that holds the keys"
            raise Refused(Reason.EMPTY_TEXT, "content.body", "encrypted event, which has no text", remedy)
        if event.type == REDACTION:
            yield self._redaction(event, room)
        elif event.content.relates_to and event.content.relates_to.rel_type == "m.replace":
            yield from self._edit(event, room)
        else:
            yield from self._message(event, room)

    def _message(self, event: Event, room: str) -> Iterator[Result]:
        content, relation = event.content, event.content.relates_to
        thread = relation.thread() if relation else None
        conversation = room if thread is None else f"{room}/{thread}"
        answered = relation.in_reply_to is not None if relation else False
        record = CreateTurn(
            conversation=conversation,
            sent_at=since_epoch("origin_server_ts", event.origin_server_ts, _MILLISECOND),
            turn=event.event_id,
            holder=event.sender,
            text=text(event.type, content, is_reply=answered),
            reply_to=relation.reply() if relation else None,
            holder_kind=HolderKind.BOT if content.msgtype == "m.notice" else HolderKind.USER,
            media=media(event.type, content),
        )
        yield checked(record, _NAMES)
        key = (room, event.event_id)
        self._seen.put(key, _Seen(event.sender, conversation))
        for edit in self._early.take(key) or ():
            yield from self._edit(edit, room)
        if isinstance(event.bundled_edit(), dict) and "content" in event.bundled_edit():
            yield from self.take(room, event.bundled_edit())

    def _edit(self, event: Event, room: str) -> Iterator[Result]:
        relation = event.content.relates_to
        original = relation.event_id if relation else None
        if original is None:
            raise Refused(Reason.MISSING_FIELD, "content.m.relates_to.event_id", "missing", "add event_id")
        seen = self._seen.get((room, original))
        if seen is None:
            early = self._early.get((room, original)) or ()
            self._early.put((room, original), (*early, event)[-_EARLY_EDITS:])
        elif seen.sender == event.sender and not seen.is_edit:
            yield checked(self._edited(event, original, seen), _NAMES)
            self._seen.put((room, event.event_id), msgspec.structs.replace(seen, is_edit=True))

    def _edited(self, event: Event, original: str, seen: _Seen) -> EditTurn:
        new = event.content.new_content
        if new is None:
            words = text(event.type, event.content, is_reply=False, is_edit=True)
        else:
            words = text(event.type, new, is_reply=False)
        return EditTurn(
            conversation=seen.conversation,
            sent_at=since_epoch("origin_server_ts", event.origin_server_ts, _MILLISECOND),
            turn=original,
            text=words,
            id=keys.joined("edit", event.event_id),
        )

    def _redaction(self, event: Event, room: str) -> DeleteTurn:
        redacts = event.content.redacts or event.redacts
        if redacts is None:
            raise Refused(Reason.MISSING_FIELD, "redacts", "missing", "add redacts")
        seen = self._seen.get((room, redacts))
        if seen is not None and seen.is_edit:
            got, remedy = (
                "event that is an edit",
                "send an edit with the text that holds; the one before is not kept",
            )
            raise Refused(Reason.INVALID_VALUE, "redacts", got, remedy)
        self._early.take((room, redacts))
        sent_at = since_epoch("origin_server_ts", event.origin_server_ts, _MILLISECOND)
        conversation = room if seen is None else seen.conversation
        record = DeleteTurn(conversation=conversation, sent_at=sent_at, turn=redacts)
        checked(record, _NAMES)
        return record

    def left(self) -> Iterator[Refused]:
        """One refusal for each original whose edits came, but not itself."""
        for _ in self._early:
            got = "event that did not come: who wrote it cannot be compared"
            yield Refused(
                Reason.INVALID_VALUE, "content.m.relates_to.event_id", got, "send the original, too"
            )


def recognises(fields: dict[str, Any]) -> bool:
    """Whether an object with these fields at its top is an event or an answer."""
    is_event = {"type", "sender", "content", "event_id"} <= fields.keys()
    is_answer = {"next_batch", "rooms"} <= fields.keys() or {"chunk", "start"} <= fields.keys()
    is_export = {"room_name", "messages"} <= fields.keys()
    return is_event or is_answer or is_export or ("events" in fields and "turns" not in fields)


def read(lines: Iterable[RawLine], said: Sayings = UNSAID) -> Iterator[Line]:
    """What each line's events give, in their order."""
    timeline, number = Timeline(said), 1
    for line in lines:
        number = line.number
        try:
            if isinstance(line.content, Refused):
                raise line.content
            answer = decode(line.content, _OBJECT)
        except Refused as refused:
            yield Line(number, refused)
            continue
        for room, event in _events(answer):
            yield from (Line(number, result) for result in timeline.take(room, event))
    yield from (Line(number, refused) for refused in timeline.left())


def read_document(stream: BinaryIO, said: Sayings = UNSAID) -> Iterator[Line]:
    """As `read`, of one answer or export over many lines; numbers count events. Raises OSError."""
    timeline, number = Timeline(said), 0
    try:
        for place, event in documents.items(documents.events(stream), _is_event, lambda part: None):
            number += 1
            room = place.removeprefix("rooms.join.").removeprefix("rooms.leave.").removesuffix(_TIMELINE)
            room_of = room if place.startswith("rooms.") else None
            yield from (Line(number, result) for result in timeline.take(room_of, event))
    except Refused as refused:
        yield Line(number + 1, refused)
    yield from (Line(number + 1, refused) for refused in timeline.left())


def _is_event(place: str) -> bool:
    in_sync = place.startswith(("rooms.join.", "rooms.leave.")) and place.endswith(_TIMELINE)
    return in_sync or place in ("item", *(f"{name}.item" for name in _LISTS))


def _events(answer: dict[str, Any]) -> Iterator[tuple[str | None, Any]]:
    """The timeline's events of an answer, oldest first, each with the room that surrounds it."""
    if "rooms" in answer:
        for membership in ("join", "leave"):
            for room, joined in _object(_object(answer["rooms"]).get(membership)).items():
                for event in _array(_object(_object(joined).get("timeline")).get("events")):
                    yield room, event
        return
    name = next((name for name in _LISTS if isinstance(answer.get(name), list)), None)
    if name is None or "event_id" in answer:
        yield None, answer
        return
    found = answer[name]
    times = [_object(event).get("origin_server_ts") for event in found[:1] + found[-1:]]
    backwards = all(isinstance(time, int) for time in times) and times[:1] > times[1:]
    yield from ((None, event) for event in (reversed(found) if backwards else found))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _array(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
