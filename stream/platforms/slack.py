"""Slack's Events API: a request's body, a Socket Mode envelope or a bare event a line.

https://docs.slack.dev/reference/events/message. Slack sends an event again where no answer came in three
seconds: it gives the same records again.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from stream.platforms import event_payloads
from stream.platforms.event_payloads import Result, converted, inner, results, whole
from stream.platforms.lines import Line, RawLine
from stream.platforms.sayings import UNSAID, Sayings
from stream.platforms.slack_messages import NAMES, Message
from stream.platforms.slack_messages import records as of_message
from tracker.records import Name, Reason, Record, Refused

_MESSAGE = "message"
_EVENTS = ("event_callback", "events_api")  # every other envelope is Slack's own: a challenge, a greeting


class _Event(Message):
    channel: Name | None = None


def recognises(fields: Collection[str]) -> bool:
    """Whether an object with these fields at its top is a body, an envelope or an event."""
    is_body = "event" in fields and ("team_id" in fields or "event_id" in fields or "api_app_id" in fields)
    is_envelope = "envelope_id" in fields and "payload" in fields
    return is_body or is_envelope or all(field in fields for field in ("type", "channel", "ts"))


def read(lines: Iterable[RawLine], said: Sayings = UNSAID) -> Iterator[Line]:
    """What each line's event gives, in their order."""
    return event_payloads.read(lines, records)


def records(payload: Any) -> Iterator[Result]:
    """The records of one body, envelope or event, as decoded from JSON; none of what is no message."""
    return results(_records(payload), NAMES)


def _records(payload: Any) -> Iterator[Record]:
    event = _event(whole(payload))
    if event is None:
        return
    message = converted(event, _Event)
    if message.channel is None:
        raise Refused(Reason.MISSING_FIELD, "channel", "missing", "add channel")
    yield from of_message(message, message.channel)


def _event(given: dict[str, Any]) -> dict[str, Any] | None:
    """The message's event within its envelopes; none of other events, whose fields mean other things."""
    if "envelope_id" in given:
        given = inner(given, "payload") if "payload" in given else {}
    if given.get("type") in _EVENTS or "event" in given:
        given = inner(given, "event")
    return given if given.get("type") == _MESSAGE else None
