"""Twitch's IRC: the server's lines as they come, with the capabilities tags and commands.

https://dev.twitch.tv/docs/chat/irc. A room's clearing, or one person's, is a clear. What a person adds to a
subscription or an announcement is a turn; the row itself is none.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator

from stream.platforms.event_payloads import Result, results
from stream.platforms.lines import Line, RawLine
from stream.platforms.recent import Recent
from stream.platforms.sayings import UNSAID, Sayings
from stream.platforms.times import since_epoch
from stream.platforms.twitch_chat import kind_of, words
from stream.platforms.twitch_irc_lines import Message, parsed
from tracker import keys
from tracker.records import ClearTurns, CreateTurn, DeleteTurn, Reason, Record, Refused

_FIRST = re.compile(rb"(?:@\S+ +)?:\S*tmi\.twitch\.tv (?:[A-Z]+|[0-9]{3})(?: |\Z)|PING :tmi\.twitch\.tv\Z")
_ASK = "ask for the capabilities: CAP REQ :twitch.tv/tags twitch.tv/commands"
_NAMES = {
    "turn": "id",
    "holder": "user-id",
    "sent_at": "tmi-sent-ts",
    "conversation": "room-id",
    "display_name": "display-name",
}
_MILLISECOND = dt.timedelta(milliseconds=1)


class Rooms:
    """The rooms' lines in the order they come, as records.

    A deletion may name its room by the channel's name alone, so the rooms' ids are kept; memory is bounded.
    """

    def __init__(self) -> None:
        self._ids: Recent[str] = Recent()
        self._commands: dict[str, Callable[[Message, str], Iterator[Record]]] = {
            "PRIVMSG": self._said,
            "USERNOTICE": self._said,
            "CLEARMSG": self._deleted,
            "CLEARCHAT": self._cleared,
        }

    def take(self, content: bytes) -> Iterator[Result]:
        """What a line gives; none of what is no turn."""
        return results(self._of(content), _NAMES)

    def _of(self, content: bytes) -> Iterator[Record]:
        message = parsed(content)
        if room := message.tags.get("room-id"):
            self._ids.put(("", message.channel()), room)
        handle = self._commands.get(message.command)
        if handle is not None:
            yield from handle(message, self._room(message))

    def _room(self, message: Message) -> str:
        room = message.tags.get("room-id") or self._ids.get(("", message.channel()))
        if room is None:
            remedy = (
                _ASK if not message.tags else "send the channel's ROOMSTATE before: it names the room's id"
            )
            raise Refused(Reason.MISSING_FIELD, "room-id", "missing or empty", remedy)
        return room

    def _said(self, message: Message, room: str) -> Iterator[Record]:
        tags = message.tags
        said = words(message.said(), tags.get("reply-parent-display-name"))
        if message.command == "USERNOTICE" and not said.strip():
            return
        yield CreateTurn(
            conversation=room,
            sent_at=_sent_at(message),
            turn=_tag(message, "id"),
            holder=_tag(message, "user-id"),
            text=said,
            reply_to=tags.get("reply-parent-msg-id") or None,
            holder_kind=kind_of(each.partition("/")[0] for each in tags.get("badges", "").split(",")),
            display_name=tags.get("display-name") or tags.get("login") or message.login() or None,
        )

    def _deleted(self, message: Message, room: str) -> Iterator[Record]:
        turn = _tag(message, "target-msg-id")
        yield DeleteTurn(conversation=room, sent_at=_sent_at(message), turn=turn)

    def _cleared(self, message: Message, room: str) -> Iterator[Record]:
        """A person's turns, where the line names one; never all of them because its id is missing."""
        holder = _tag(message, "target-user-id") if message.said() else message.tags.get("target-user-id")
        ident = keys.joined("clear", room, holder or "", _tag(message, "tmi-sent-ts"))
        yield ClearTurns(conversation=room, sent_at=_sent_at(message), id=ident, holder=holder or None)


def recognises(first: bytes) -> bool:
    """Whether a file's first line is one of Twitch's."""
    return _FIRST.match(first) is not None


def read(lines: Iterable[RawLine], said: Sayings = UNSAID) -> Iterator[Line]:
    """What each line gives, in their order."""
    rooms = Rooms()
    for line in lines:
        if isinstance(line.content, Refused):
            yield Line(line.number, line.content)
        else:
            yield from (Line(line.number, result) for result in rooms.take(line.content))


def _tag(message: Message, name: str) -> str:
    found = message.tags.get(name)
    if not found:
        raise Refused(Reason.MISSING_FIELD, name, "missing or empty", _ASK)
    return found


def _sent_at(message: Message) -> dt.datetime:
    written = _tag(message, "tmi-sent-ts")
    if not (written.isascii() and written.isdigit() and len(written) <= len("253402300799999")):
        raise Refused(
            Reason.INVALID_VALUE, "tmi-sent-ts", "no number of milliseconds", "send milliseconds since 1970"
        )
    return since_epoch("tmi-sent-ts", int(written), _MILLISECOND)
