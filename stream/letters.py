"""Dead letters as an operator meets them: which one, why, what became of it, and the record to send again.

A letter's id says where its record stood, `<topic>/<partition>/<offset>`: after a crash it may have been sent
more than once, and is still one letter. What an operator did with it stands on the same topic, in its
partition, as a message without value. A letter that was retried and refused again stands elsewhere: it is a
new one, and its record names the old one in `volteface.retry.of`.
"""

import datetime as dt
import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from stream.dead_letters import LETTER, MAX_KEY_BYTES, MAX_VALUE_BYTES, PLACE, TOPIC, Headers
from stream.outbox import TURNS
from stream.sender import ToSend
from stream.store.port import Message
from tracker import keys
from tracker.parsing import parse, parse_keyed

RETRY_OF = "volteface.retry.of"
STATUS, BY, AT = "volteface.status", "volteface.by", "volteface.at"

_NOT_ITS_OWN = ("__connect.", "volteface.")  # headers that a dead letter has and its record had not


class CannotRetry(Exception):
    """A letter whose record cannot be sent again, and why."""


class Status(enum.StrEnum):
    """What became of a letter."""

    OPEN = "open"
    RETRIED = "retried"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an operator did with a letter."""

    letter: str
    status: Status
    by: str
    at: str


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter, as it stands in the topic."""

    id: str
    partition: int
    offset: int
    time: dt.datetime
    key: bytes | None
    value: bytes | None
    headers: Headers

    def header(self, name: str) -> str:
        """A header's text; "" where there is none."""
        return _text(self.headers, name) or ""

    @property
    def conversation(self) -> tuple[str, str] | None:
        """(tenant, conversation) of the key; None where it is no conversation's."""
        try:
            return keys.parse_conversation_key(self.key or b"")
        except keys.MalformedKey:
            return None

    @property
    def sizes(self) -> tuple[int, int]:
        """The bytes that the record's key and value had, of which a letter holds only so many."""
        found = (("key", self.key, MAX_KEY_BYTES), ("value", self.value, MAX_VALUE_BYTES))
        key, value = (_size(self.header(f"volteface.cut.{name}"), given, most) for name, given, most in found)
        return key, value

    @property
    def cut(self) -> bool:
        """Whether the letter holds less than its record."""
        return self.sizes != (len(self.key or b""), len(self.value or b""))


@dataclass(frozen=True, slots=True)
class Row:
    """What a list says of a letter: never the record itself."""

    id: str
    time: str
    status: Status
    reason: str
    field: str
    got: str
    remedy: str
    tenant: str | None
    conversation: str | None
    retry_of: str | None
    by: str | None
    at: str | None


def read(message: Any) -> Letter | Verdict | None:
    """What a message of the dead-letters topic is; None where it is neither."""
    headers = tuple((name, value or b"") for name, value in message.headers)
    names = {name for name, _ in headers}
    if names.issuperset(PLACE):
        place = "/".join(_text(headers, name) or "" for name in PLACE)
        time = dt.datetime.fromtimestamp(max(0, message.timestamp) / 1000, dt.UTC)
        ident = _text(headers, LETTER) or place
        return Letter(ident, message.partition, message.offset, time, message.key, message.value, headers)
    if message.value is None and names.issuperset((LETTER, STATUS)):
        letter, status, by, at = (_text(headers, name) or "" for name in (LETTER, STATUS, BY, AT))
        return Verdict(letter, Status(status), by, at) if status in set(Status) else None
    return None


def row(letter: Letter, verdict: Verdict | None) -> Row:
    """What a list says of the letter."""
    tenant, conversation = letter.conversation or (None, None)
    return Row(
        id=letter.id,
        time=rfc_3339(letter.time),
        status=verdict.status if verdict else Status.OPEN,
        reason=letter.header("volteface.reason"),
        field=letter.header("volteface.field"),
        got=letter.header("volteface.got"),
        remedy=letter.header("volteface.remedy"),
        tenant=tenant,
        conversation=conversation,
        retry_of=letter.header(RETRY_OF) or None,
        by=verdict.by if verdict else None,
        at=verdict.at if verdict else None,
    )


class Newest:
    """The newest rows, each letter once; never holds more than twice as many as it is asked for."""

    def __init__(self, limit: int) -> None:
        self._limit, self._rows = limit, dict[str, tuple[tuple[dt.datetime, int, int], Row]]()
        self.left_out = False

    def add(self, letter: Letter, verdict: Verdict | None) -> None:
        """One more letter."""
        if letter.id not in self._rows:
            place = (letter.time, letter.partition, letter.offset)
            self._rows[letter.id] = place, row(letter, verdict)
        if len(self._rows) > 2 * self._limit:
            self.rows()

    def rows(self) -> list[Row]:
        """The newest last."""
        newest = sorted(self._rows.items(), key=lambda item: item[1][0])
        self.left_out = self.left_out or len(newest) > self._limit
        self._rows = dict(newest[-self._limit :])
        return [found for _, found in self._rows.values()]


def whole(letter: Letter, original: Any | None) -> Letter:
    """A letter that was cut, with all of its record, read where it stood. Raises CannotRetry."""
    if original is None:
        raise CannotRetry(
            "it was cut, and the turns topic no longer holds the record; use --edit with all of it"
        )
    key, value = original.key or b"", original.value or b""
    begins = key.startswith(letter.key or b"") and value.startswith(letter.value or b"")
    if not begins or (len(key), len(value)) != letter.sizes:
        raise CannotRetry("it was cut, and another record stands in its place; use --edit with all of it")
    return replace(letter, key=original.key, value=original.value, headers=tuple(original.headers))


def again(letter: Letter, edited: bytes | None = None, fix_key: bool = False) -> ToSend:
    """The record to be sent again. Raises Refused where what was edited, or lacks a key, is no record."""
    key, value = letter.key, letter.value if edited is None else edited
    if fix_key:
        record = parse(value)
        key = keys.conversation_key(record.tenant, record.conversation)
    elif edited is not None:
        parse_keyed(key, value)
    own = ((name, given or b"") for name, given in letter.headers if not name.startswith(_NOT_ITS_OWN))
    # First: should it be refused again, its letter keeps as many of its headers as fit.
    return Message(TURNS, key, value), [(RETRY_OF, letter.id.encode()), *own]


def marked(letter: Letter, status: Status, by: str, now: dt.datetime) -> ToSend:
    """The message that says what became of a letter."""
    said = {STATUS: status.value, LETTER: letter.id, BY: by, AT: rfc_3339(now)}
    return Message(TOPIC, letter.key, None), [
        (name, text.encode(errors="replace")) for name, text in said.items()
    ]


def rfc_3339(time: dt.datetime) -> str:
    """A time in UTC, to the millisecond."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(headers: Iterable[tuple[str, bytes]], name: str) -> str | None:
    found = [value for given, value in headers if given == name]
    return found[-1].decode(errors="replace") if found else None


def _size(said: str, given: bytes | None, most: int) -> int:
    """The bytes before the cut: a record may bring such a header without having been cut."""
    held = len(given or b"")
    return int(said) if held == most and len(said) <= 12 and said.isdecimal() else held
