"""Matrix events as the client-server API writes them, and what they say."""

from typing import Any

import msgspec

from tracker.records import Media, Modality, Name

MESSAGE, STICKER, REDACTION, ENCRYPTED = "m.room.message", "m.sticker", "m.room.redaction", "m.room.encrypted"

_MEDIA = {"m.image": Modality.IMAGE, "m.audio": Modality.AUDIO, "m.video": Modality.VIDEO}
_MIMES = {"image": Modality.IMAGE, "audio": Modality.AUDIO, "video": Modality.VIDEO}
_FILES = frozenset({*_MEDIA, "m.file"})


class _Reply(msgspec.Struct):
    event_id: Name


class Relation(msgspec.Struct):
    """How an event relates to another."""

    rel_type: str | None = None
    event_id: Name | None = None
    in_reply_to: _Reply | None = msgspec.field(name="m.in_reply_to", default=None)
    is_falling_back: bool = False

    def thread(self) -> str | None:
        """The root of the thread it stands in."""
        return self.event_id if self.rel_type == "m.thread" else None

    def reply(self) -> str | None:
        """What it answers; a thread's fallback for old clients is no answer."""
        fallback = self.rel_type == "m.thread" and self.is_falling_back
        return None if self.in_reply_to is None or fallback else self.in_reply_to.event_id


class _Info(msgspec.Struct):
    mimetype: str | None = None


class _File(msgspec.Struct):
    url: str | None = None


class Content(msgspec.Struct):
    """A message's content, or an edit's new one."""

    body: str | None = None
    msgtype: str | None = None
    filename: str | None = None
    url: str | None = None
    file: _File | None = None
    info: _Info | None = None
    redacts: Name | None = None
    relates_to: Relation | None = msgspec.field(name="m.relates_to", default=None)
    new_content: "Content | None" = msgspec.field(name="m.new_content", default=None)


class _Relations(msgspec.Struct):
    replace: Any = msgspec.field(name="m.replace", default=None)


class _Unsigned(msgspec.Struct):
    redacted_because: Any = None
    relations: _Relations | None = msgspec.field(name="m.relations", default=None)


class Event(msgspec.Struct):
    """An event of a room's timeline."""

    type: str
    event_id: Name
    sender: Name
    origin_server_ts: int
    content: Content
    room_id: Name | None = None
    redacts: Name | None = None
    unsigned: _Unsigned | None = None
    state_key: str | None = None

    def is_redacted(self) -> bool:
        """Whether only its shell is left."""
        return self.unsigned is not None and self.unsigned.redacted_because is not None

    def bundled_edit(self) -> Any:
        """The newest edit, where the server put it beside the original."""
        relations = self.unsigned.relations if self.unsigned else None
        return relations.replace if relations else None


def text(kind: str, content: Content, *, is_reply: bool, is_edit: bool = False) -> str:
    """What the sender wrote: no file's name, no quoted fallback of a reply, no mark of an edit."""
    body = content.body or ""
    if kind == STICKER or (content.msgtype in _FILES and content.filename in (None, content.body)):
        return ""
    if is_edit:
        body = body.removeprefix("* ")
    return _unquoted(body) if is_reply else body


def media(kind: str, content: Content) -> tuple[Media, ...]:
    """The item an event shows; a sticker's body describes it."""
    mime = content.info.mimetype if content.info else None
    if kind == STICKER:
        modality: Modality | None = Modality.MEME
    else:
        modality = _MEDIA.get(content.msgtype or "")
    if modality is None and content.msgtype == "m.file":
        modality = _MIMES.get((mime or "").partition("/")[0])
    if modality is None:
        return ()
    uri = content.url or (content.file.url if content.file else None)
    description = content.body if kind == STICKER else None
    return (Media(modality=modality, uri=uri, mime=mime, description=description),)


def _unquoted(body: str) -> str:
    """Without the lines that repeat what is answered, and the blank one after them."""
    lines = body.split("\n")
    start = next(
        (at for at, line in enumerate(lines) if not line.startswith("> ") and line != ">"), len(lines)
    )
    if start and start < len(lines) and not lines[start].strip():
        start += 1
    return "\n".join(lines[start:])
