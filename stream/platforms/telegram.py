"""Telegram Desktop's export: `result.json` of one chat, or of a whole account.

Fields as Telegram Desktop's `export_output_json.cpp` writes them. A chat is called as Telegram calls its
peers (`user7`, `chat7`, `channel7`). Of an edited message only the last text exists, so it is the turn's
text; deleted ones are absent. A forwarded message is its forwarder's turn and another's words: it is quoted
("> ").
"""

import datetime as dt
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec
from msgspec import UNSET, UnsetType

from stream.platforms.documents import Event, events, items
from stream.platforms.lines import Line, checked
from stream.platforms.sayings import UNSAID, Sayings
from stream.platforms.times import LocalClock, since_epoch
from tracker.parsing import refusal
from tracker.records import CreateTurn, HolderKind, Media, Modality, Reason, Record, Refused

_CHATS = ("chats.list.item", "left_chats.list.item")
_MESSAGES = frozenset({"messages.item", *(f"{chat}.messages.item" for chat in _CHATS)})
_PEERS = {
    "personal_chat": "user",
    "bot_chat": "user",
    "saved_messages": "user",
    "private_group": "chat",
    "private_supergroup": "channel",
    "public_supergroup": "channel",
    "private_channel": "channel",
    "public_channel": "channel",
}
_MEDIA = {
    "sticker": Modality.MEME,
    "animation": Modality.VIDEO,
    "video_file": Modality.VIDEO,
    "video_message": Modality.VIDEO,
    "voice_message": Modality.AUDIO,
    "audio_file": Modality.AUDIO,
}
_MIMES = {"image": Modality.IMAGE, "audio": Modality.AUDIO, "video": Modality.VIDEO}
_NOT_EXPORTED = "(File "  # "photos/x.jpg", or why the file was left out, in parentheses
_NAMES = {"holder": "from_id", "turn": "id", "display_name": "from", "conversation": "chat id"}


class _Part(msgspec.Struct):
    text: str


class _Poll(msgspec.Struct):
    question: str | list[str | _Part] | None = None


class _Message(msgspec.Struct):
    id: int
    type: str = "message"
    date: str | None = None
    date_unixtime: str | int | None = None
    from_: str | None = msgspec.field(name="from", default=None)
    from_id: str | int | None = None
    text: str | list[str | _Part] = ""
    forwarded_from: str | UnsetType | None = UNSET
    reply_to_message_id: int | None = None
    reply_to_peer_id: str | None = None
    photo: str | None = None
    file: str | None = None
    media_type: str | None = None
    mime_type: str | None = None
    sticker_emoji: str | None = None
    poll: _Poll | None = None


class _Chat:
    """The chat whose messages are being read: its id and type stand before them."""

    def __init__(self, clock: LocalClock) -> None:
        self.clock = clock
        self.id: int | str | None = None
        self.type: str | None = None

    def see(self, part: Event) -> None:
        """Take what the part says of a chat."""
        where, what, value = part
        chat, _, field = where.rpartition(".")
        if what == "start_map" and where in _CHATS:
            self.id = self.type = None
            self.clock.restart()
        elif chat in ("", *_CHATS) and field in ("id", "type") and what in ("string", "number"):
            setattr(self, field, value)

    def name(self) -> str | None:
        """The peer's name, comparable with `from_id` and `reply_to_peer_id`."""
        return None if self.id is None else f"{_PEERS.get(self.type or '', '')}{self.id}"


def recognises(fields: dict[str, Any]) -> bool:
    """Whether a document with these fields at its top is an export."""
    account = "chats" in fields or "personal_information" in fields
    return {"id", "type", "messages"} <= fields.keys() or ("about" in fields and account)


def read(stream: BinaryIO, said: Sayings = UNSAID) -> Iterator[Line]:
    """A turn, or a refusal, for each message; its number is its place in the file. Raises OSError."""
    chat, number = _Chat(LocalClock(said.zone)), 0
    try:
        for _, message in items(events(stream), _MESSAGES.__contains__, chat.see):
            number += 1
            result = _result(message, chat, said)
            if result is not None:
                yield Line(number, result)
    except Refused as refused:
        yield Line(number + 1, refused)


def _result(message: Any, chat: _Chat, said: Sayings) -> Record | Refused | None:
    if message.get("type") == "service":
        return None
    try:
        return checked(_turn(msgspec.convert(message, _Message), chat, said), _NAMES)
    except msgspec.ValidationError as error:
        return refusal(error)
    except Refused as refused:
        return refused
    except RecursionError:
        return Refused(
            Reason.NOT_JSON, "value", "nested too deeply", "nothing to do: Telegram writes no such"
        )


def _turn(message: _Message, chat: _Chat, said: Sayings) -> CreateTurn:
    if message.type == "unsupported":
        remedy = "nothing to do: the export says nothing of it"
        raise Refused(Reason.EMPTY_TEXT, "type", "message that Telegram could not export", remedy)
    conversation = chat.name() or said.conversation
    if conversation is None:
        remedy = "export the chat again, or name it with --conversation"
        raise Refused(Reason.MISSING_FIELD, "chat id", "missing before the messages", remedy)
    holder = _holder(message, conversation, chat.type)
    is_bot = chat.type == "bot_chat" and holder == conversation
    return CreateTurn(
        conversation=conversation,
        sent_at=_sent_at(message, chat.clock),
        turn=str(message.id),
        holder=holder,
        text=_text(message),
        reply_to=_reply(message, conversation),
        holder_kind=HolderKind.BOT if is_bot else HolderKind.USER,
        display_name=message.from_,
        media=_media(message),
    )


def _holder(message: _Message, conversation: str, chat_type: str | None) -> str:
    """`from` is a name, or null of a deleted account; who it is says `from_id`."""
    if isinstance(message.from_id, int):  # as exports before 2021 wrote it
        return f"user{message.from_id}"
    if message.from_id is None and chat_type in ("private_channel", "public_channel"):
        return conversation
    if message.from_id is None:
        raise Refused(Reason.MISSING_FIELD, "from_id", "missing", "nothing to do: nobody can be told")
    return message.from_id


def _sent_at(message: _Message, clock: LocalClock) -> dt.datetime:
    if message.date_unixtime is not None:
        try:
            return since_epoch("date_unixtime", int(message.date_unixtime), dt.timedelta(seconds=1))
        except ValueError as error:
            if isinstance(error, Refused):
                raise
            got, remedy = "string that is no whole number", "send seconds since 1970"
            raise Refused(Reason.INVALID_VALUE, "date_unixtime", got, remedy) from None
    if message.date is None:
        raise Refused(Reason.MISSING_FIELD, "date", "missing", "add date or date_unixtime")
    try:
        date = dt.datetime.fromisoformat(message.date)
    except ValueError:
        remedy = "write it as Telegram does: 2026-11-29T20:14:05"
        raise Refused(Reason.INVALID_VALUE, "date", "string that is no date", remedy) from None
    return date if date.tzinfo else clock.moment("date", date)


def _reply(message: _Message, conversation: str) -> str | None:
    """A reply to another chat's message is none here."""
    elsewhere = message.reply_to_peer_id not in (None, conversation)
    return None if message.reply_to_message_id is None or elsewhere else str(message.reply_to_message_id)


def _text(message: _Message) -> str:
    text = _joined(message.text)
    if not text and message.poll is not None:
        text = _joined(message.poll.question or "")
    if message.forwarded_from is UNSET or not text:
        return text
    return "\n".join(f"> {line}" for line in text.split("\n"))


def _joined(text: str | list[str | _Part]) -> str:
    """A string, or an array of strings and of objects for what is formatted."""
    if isinstance(text, str):
        return text
    return "".join(part if isinstance(part, str) else part.text for part in text)


def _media(message: _Message) -> tuple[Media, ...]:
    mime = message.mime_type
    if message.photo is not None:
        modality: Modality | None = Modality.IMAGE
    else:
        modality = _MEDIA.get(message.media_type or "") or _MIMES.get((mime or "").partition("/")[0])
    if modality is None:
        return ()
    path = message.photo or message.file
    uri = None if path is None or _NOT_EXPORTED in path else path
    return (Media(modality=modality, uri=uri, mime=mime, description=message.sticker_emoji),)
