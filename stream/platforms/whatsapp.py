"""WhatsApp's export of one chat as text (`_chat.txt`, `WhatsApp Chat with ....txt`).

A message goes on until the next stamp. The order of the dates' numbers is found in the whole file first, so
it is read twice, from a copy on disk. It has no ids (see `ordinals`), no zone, no replies and no edits; what
was deleted and what WhatsApp wrote itself is no turn, nor is media of which nothing is said.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, cast

import msgspec

from stream.platforms.lines import Line, RawLine, checked, every_line
from stream.platforms.ordinals import Ordinals
from stream.platforms.sayings import UNSAID, DateOrder, Sayings
from stream.platforms.times import LocalClock
from stream.platforms.whatsapp_stamps import DateEvidence, Stamp, stamped
from stream.platforms.whatsapp_words import MARK, attachment, is_nobodys, left_out, unedited, unmarked
from tracker.records import MAX_TEXT_BYTES, CreateTurn, Media, Modality, Reason, Record, Refused

PLATFORM = "whatsapp"

_IN_MEMORY = 1 << 20
_SURELY_TOO_LONG = 4 * MAX_TEXT_BYTES
_SPEAKER = re.compile(r"(?P<speaker>[^\n]+?):(?: |\n|$)(?P<text>.*)", re.DOTALL)
_POLL = re.compile(r"[^\w\n]*(?:poll|encuesta|enquete|sondagem|umfrage|sondage|投票)\s?[:：]", re.IGNORECASE)
_STRANGER = "~"  # before the name that somebody gave themselves
_NAMES = {"holder": "speaker", "sent_at": "date"}


class _Message(msgspec.Struct):
    """A stamped line and those that go on with it."""

    number: int
    stamp: Stamp
    lines: list[str]
    size: int
    broken: Refused | None = None

    def add(self, line: str) -> None:
        """Take a line that goes on with it; no more than is surely too long."""
        if self.size <= _SURELY_TOO_LONG:
            self.lines.append(line)
            self.size += len(line.encode()) + 1
        else:
            got, remedy = (
                f"text of more than {_SURELY_TOO_LONG} bytes",
                f"at most {MAX_TEXT_BYTES} bytes of UTF-8",
            )
            self.broken = self.broken or Refused(Reason.TOO_LONG, "text", got, remedy)


class _Chat(msgspec.Struct):
    """How this file is read, and what was counted in it."""

    conversation: str
    order: DateOrder
    clock: LocalClock
    ordinals: Ordinals


def recognises(first: bytes) -> bool:
    """Whether a line begins with a stamp."""
    return stamped(first.decode(errors="replace")) is not None


def read(stream: BinaryIO, said: Sayings = UNSAID) -> Iterator[Line]:
    """A turn, or a refusal, for each message that somebody wrote.

    Raises Refused where the dates' order or the conversation's name must be said, and OSError.
    """
    conversation = said.conversation or said.file
    if conversation is None:
        remedy = "name the conversation with --conversation"
        raise Refused(Reason.MISSING_FIELD, "conversation", "a stream, which has no name", remedy)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spooled:
        copy = cast(BinaryIO, spooled)
        shutil.copyfileobj(stream, copy)
        order = said.dates or _order(copy)
        copy.seek(0)
        chat = _Chat(conversation, order, LocalClock(said.zone), Ordinals())
        for message in _messages(every_line(copy)):
            if isinstance(message, Line):
                yield message
            elif (result := _result(message, chat)) is not None:
                yield Line(message.number, result)


def _order(copy: BinaryIO) -> DateOrder:
    evidence = DateEvidence()
    copy.seek(0)
    for line in every_line(copy):
        if isinstance(line.content, bytes) and (found := stamped(line.content.decode(errors="replace"))):
            evidence.see(found[0])
    return evidence.order()


def _messages(lines: Iterator[RawLine]) -> Iterator[_Message | Line]:
    """The messages; a refused line for one that is none and goes on with none."""
    message: _Message | None = None
    for line in lines:
        refused = _broken(line)
        text = line.content.decode(errors="replace") if isinstance(line.content, bytes) else ""
        if found := stamped(text):
            if message is not None:
                yield message
            message = _Message(line.number, found[0], [found[1]], len(text.encode()), refused)
        elif message is not None:
            message.add(text)
            message.broken = message.broken or refused
        elif refused is not None or text.strip():
            yield Line(line.number, refused or _unstamped())
    if message is not None:
        yield message


def _broken(line: RawLine) -> Refused | None:
    if isinstance(line.content, Refused):
        return line.content
    try:
        line.content.decode()
    except UnicodeDecodeError as error:
        got = f"byte {error.start} is no UTF-8"
        return Refused(Reason.NOT_UTF8, "line", got, "export the chat again, as UTF-8")
    return None


def _unstamped() -> Refused:
    got, remedy = "line before any message", "begin with a date and a time, as WhatsApp exports them"
    return Refused(Reason.INVALID_VALUE, "line", got, remedy)


def _result(message: _Message, chat: _Chat) -> Record | Refused | None:
    """None where WhatsApp wrote it, or where it was deleted."""
    row = _SPEAKER.match("\n".join(message.lines))
    if row is None or _is_nobodys(row["speaker"], row["text"]):
        return None
    try:
        if message.broken is not None:
            raise message.broken
        return checked(_turn(message, row["speaker"], row["text"], chat), _NAMES)
    except Refused as refused:
        return refused


def _is_nobodys(speaker: str, text: str) -> bool:
    """iOS marks what WhatsApp wrote; on Android only the words tell it."""
    if is_nobodys(speaker, text):
        return True
    by_whatsapp = text.startswith(MARK) and not _POLL.match(text)
    return by_whatsapp and attachment(text) is None and left_out(text) is None


def _turn(message: _Message, speaker: str, said: str, chat: _Chat) -> CreateTurn:
    text, media = _shown(unedited(said))
    holder = unmarked(unmarked(speaker).removeprefix(_STRANGER))
    sent_at = chat.clock.moment("date", message.stamp.local(chat.order))
    shown = text + "".join(f"\n{item.uri or item.modality}" for item in media)
    return CreateTurn(
        conversation=chat.conversation,
        sent_at=sent_at,
        turn=chat.ordinals.turn(PLATFORM, chat.conversation, holder, sent_at, shown),
        holder=holder,
        text=text,
        media=media,
    )


def _shown(text: str) -> tuple[str, tuple[Media, ...]]:
    """A message's words and its media. Raises Refused where neither is there to be read."""
    name: str | None = None
    modality: Modality | None = None
    if found := attachment(text):
        name, modality, text = found
    elif gone := left_out(text):
        modality, text = gone
    elif unmarked(text):
        return unmarked(text), ()
    if modality is None and not unmarked(text):
        got, remedy = "nothing but what the export leaves out", "nothing to do, or export the chat with media"
        raise Refused(Reason.EMPTY_TEXT, "text", got, remedy)
    return unmarked(text), () if modality is None else (Media(modality=modality, uri=name),)
