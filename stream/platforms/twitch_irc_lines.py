"""A line of Twitch's IRC, taken apart.

https://dev.twitch.tv/docs/chat/irc, https://ircv3.net/specs/extensions/message-tags
"""

import re
from collections.abc import Mapping

import msgspec

from tracker.records import Reason, Refused

_LINE = re.compile(
    r"(?:@(?P<tags>[^ ]+) +)?(?::(?P<source>[^ ]+) +)?(?P<command>[A-Z]+|[0-9]{3})(?: +(?P<rest>.*))?",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_ESCAPED = {":": ";", "s": " ", "r": "\r", "n": "\n"}  # any other character stands for itself


class Message(msgspec.Struct, frozen=True):
    """A message of the server's."""

    command: str
    tags: Mapping[str, str]
    source: str  # who sends it: `login!login@login.tmi.twitch.tv`, or the server
    params: tuple[str, ...]  # the first of them is a channel; the last one may have spaces

    def channel(self) -> str:
        """Where it was said."""
        return self.params[0] if self.params else ""

    def said(self) -> str:
        """What stands after the channel."""
        return self.params[1] if len(self.params) > 1 else ""

    def login(self) -> str:
        """The sender's name."""
        return self.source.partition("!")[0]


def parsed(content: bytes) -> Message:
    """The line's parts. Raises Refused."""
    try:
        found = _LINE.fullmatch(content.decode())
    except UnicodeDecodeError as error:
        got = f"byte {error.start} is no UTF-8"
        raise Refused(Reason.NOT_UTF8, "line", got, "store the lines as they come") from None
    if found is None:
        remedy = "send the server's lines as they come: @tags :source PRIVMSG #channel :text"
        raise Refused(Reason.INVALID_VALUE, "line", "no message of IRC", remedy)
    rest = found["rest"] or ""
    middle, colon, trailing = ("", ":", rest[1:]) if rest.startswith(":") else rest.partition(" :")
    return Message(
        command=found["command"],
        tags=_tags(found["tags"] or ""),
        source=found["source"] or "",
        params=(*middle.split(), *([trailing] if colon else [])),
    )


def _tags(written: str) -> dict[str, str]:
    pairs = (each.partition("=") for each in written.split(";"))
    return {name: _ESCAPE.sub(_unescaped, value) for name, _, value in pairs if name}


def _unescaped(found: re.Match[str]) -> str:
    return _ESCAPED.get(found[1], found[1])
