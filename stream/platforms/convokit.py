"""ConvoKit's form: one utterance a line (`utterances.jsonl`), in its older and newer names.

A time that is missing is one second after the conversation's last, from 1970. Section headers are no turns.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stream.platforms.lines import Line, RawLine
from stream.platforms.recent import Recent
from tracker.parsing import RFC_3339, decode, refusal
from tracker.records import EPOCH, CreateTurn, Reason, Record, Refused, Time, check

Scalar = str | int
Clock = Recent[dt.datetime]


class _Speaker(msgspec.Struct):
    id: Scalar | None = None
    name: Scalar | None = None


class _Utterance(msgspec.Struct):
    id: Scalar
    text: str | None = None
    speaker: Scalar | _Speaker | None = None
    user: Scalar | _Speaker | None = None
    conversation_id: Scalar | None = None
    root: Scalar | None = None
    timestamp: int | float | str | None = None
    reply_to: Scalar | None = None
    dashed_reply: Scalar | None = msgspec.field(name="reply-to", default=None)
    is_section_header: bool | None = None
    meta: dict[str, Any] | None = None


_SECOND = dt.timedelta(seconds=1)
_LAST = dt.datetime.max.replace(tzinfo=dt.UTC)
_DECODER = msgspec.json.Decoder(_Utterance)
_GONE = frozenset({"[deleted]", "[removed]"})  # what Reddit leaves of a text or a name
# The record's fields, as the file calls them.
_NAMES = {"turn": "id", "holder": "speaker", "conversation": "conversation_id", "sent_at": "timestamp"}


def read(lines: Iterable[RawLine]) -> Iterator[Line]:
    """A line for each of the file's, but for section headers."""
    clock: Clock = Recent()
    for line in lines:
        result = _result(line.content, clock)
        if result is not None:
            yield Line(line.number, result)


def _result(content: bytes | Refused, clock: Clock) -> Record | Refused | None:
    if isinstance(content, Refused):
        return content
    try:
        utterance = decode(content, _DECODER)
        return None if _is_header(utterance) else check(_turn(utterance, clock))
    except Refused as refused:
        field = _NAMES.get(refused.field, refused.field)
        return Refused(refused.reason, field, refused.got, refused.remedy)


def _is_header(utterance: _Utterance) -> bool:
    return bool(utterance.is_section_header or (utterance.meta or {}).get("is_section_header"))


def _turn(utterance: _Utterance, clock: Clock) -> CreateTurn:
    conversation = _name("conversation_id", utterance.conversation_id, utterance.root)
    sent_at = _sent_at(utterance.timestamp, conversation, clock)
    text = utterance.text or ""
    if text.strip() in _GONE:
        raise Refused(Reason.EMPTY_TEXT, "text", "text taken down", "nothing to do: there is nothing to read")
    return CreateTurn(
        conversation=conversation,
        sent_at=sent_at,
        turn=_name("id", utterance.id),
        holder=_speaker(utterance),
        text=text,
        reply_to=_optional(utterance.reply_to, utterance.dashed_reply),
    )


def _optional(*values: Scalar | None) -> str | None:
    """The first value that is there, as a string."""
    return next((str(value) for value in values if value is not None and value != ""), None)


def _name(field: str, *values: Scalar | None) -> str:
    name = _optional(*values)
    if name is None:
        raise Refused(Reason.MISSING_FIELD, field, "missing", f"add {field}")
    return name


def _speaker(utterance: _Utterance) -> str:
    given = utterance.user if utterance.speaker is None else utterance.speaker
    names = (given.id, given.name) if isinstance(given, _Speaker) else (given,)
    name = _name("speaker", *names)
    if name in _GONE:  # many people under one name would seem to change their minds
        raise Refused(
            Reason.INVALID_VALUE, "speaker", "account taken down", "nothing to do: nobody can be told"
        )
    return name


def _sent_at(timestamp: float | str | None, conversation: str, clock: Clock) -> dt.datetime:
    key = ("default", conversation)
    last = clock.get(key)
    if timestamp is None or timestamp == "":
        sent_at = EPOCH if last is None else min(last, _LAST - _SECOND) + _SECOND
    else:
        sent_at = _time(timestamp)
    clock.put(key, sent_at)
    return sent_at


def _time(timestamp: float | str) -> dt.datetime:
    """Seconds since 1970 as a number or a string, or RFC 3339."""
    try:
        return EPOCH + float(timestamp) * _SECOND
    except (ValueError, OverflowError):
        got, reason = "number beyond the years 1 to 9999", Reason.INVALID_VALUE
    if isinstance(timestamp, str):
        try:
            return msgspec.convert({"timestamp": timestamp}, dict[str, Time])["timestamp"]
        except msgspec.ValidationError as error:
            found = refusal(error)
            got, reason = found.got, found.reason
    raise Refused(reason, "timestamp", got, f"{RFC_3339}, or send seconds since 1970")
