"""Slack's mrkdwn as people read it, and the words of a message that has no text.

https://docs.slack.dev/messaging/formatting-message-text
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

NameOf = Callable[[str], str | None]  # a person's name, by id

_MENTION = re.compile(r"<(?P<sign>[@#!]?)(?P<what>[^<>|]+)(?:\|(?P<label>[^<>]*))?>")
_ESCAPES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
_ESCAPE = re.compile("|".join(_ESCAPES))
_NO_TEXT = frozenset({"", "This content can't be displayed."})  # what Slack says where only blocks are


class Attachment(msgspec.Struct):
    """An older kind of block; a message that is shared is one, too."""

    text: str | None = None
    fallback: str | None = None
    is_share: bool = False
    is_msg_unfurl: bool = False


def readable(text: str, name_of: NameOf) -> str:
    """Without Slack's signs for people, channels and links."""
    shown = _MENTION.sub(lambda found: _mention(found, name_of), text)
    return _ESCAPE.sub(lambda found: _ESCAPES[found[0]], shown)


def _mention(found: re.Match[str], name_of: NameOf) -> str:
    sign, what, label = found["sign"], found["what"], found["label"]
    if sign == "@":
        return f"@{label or name_of(what) or what}"
    if sign == "#":
        return f"#{label or what}"
    if sign == "!":  # <!here>, <!subteam^S1|@team>, <!date^1^{date}|1970>
        return label or f"@{what.rpartition('^')[2]}"
    return label or what


def words(text: str | None, blocks: Any, attachments: Iterable[Attachment]) -> str:
    """The text, else what its blocks say, else its attachments; a shared message is another's: quoted."""
    if text is not None and text not in _NO_TEXT:
        return text
    return "\n".join(_leaves(blocks)) or "\n".join(_attached(each) for each in attachments).strip("\n")


def _leaves(part: Any) -> Iterator[str]:
    """A line for each block's text, field or rich text section; their parts stand in `elements`."""
    if isinstance(part, list):
        for each in part:
            yield from _leaves(each)
    elif isinstance(part, dict):
        if part.get("type") in ("rich_text_section", "rich_text_quote", "rich_text_preformatted"):
            yield "".join(_leaves(part.get("elements")))
            return
        if isinstance(part.get("text"), str):
            yield part["text"]
        for inner in ("text", "fields", "elements"):
            yield from _leaves(part.get(inner))


def _attached(attachment: Attachment) -> str:
    said = attachment.text or attachment.fallback or ""
    if not said or not (attachment.is_share or attachment.is_msg_unfurl):
        return said
    return "\n".join(f"&gt; {line}" for line in said.split("\n"))
