"""Discord's messages as its gateway and its webhook events write them, and what they say.

https://docs.discord.com/developers/resources/message
"""

import datetime as dt

import msgspec
from msgspec import UNSET, UnsetType

from stream.platforms.discord_text import quoted, readable
from stream.platforms.event_media import modality
from tracker.records import (
    MAX_MEDIA,
    HolderKind,
    Media,
    Modality,
    Name,
    Reason,
    Refused,
    Time,
)

REPLY = 19
TURNS = frozenset({0, REPLY})  # all other types are rows of Discord's own, or an app's answer to a command
_FORWARD = 1
_SNOWFLAKE_EPOCH = dt.datetime(2015, 1, 1, tzinfo=dt.UTC)
_SNOWFLAKE_BITS, _MILLISECOND_BITS = 64, 22
_SNOWFLAKE_DIGITS = 20


class Author(msgspec.Struct):
    """A user, a bot or a webhook."""

    id: Name
    username: str | None = None
    global_name: str | None = None
    bot: bool | None = None
    system: bool | None = None

    def shown(self) -> str | None:
        """The name that people see."""
        return self.global_name or self.username


class _Member(msgspec.Struct):
    nick: str | None = None


class _Attachment(msgspec.Struct):
    url: str | None = None
    content_type: str | None = None
    filename: str | None = None
    description: str | None = None


class _Embed(msgspec.Struct):
    title: str | None = None
    description: str | None = None


class _Sticker(msgspec.Struct):
    name: str | None = None


class _PollText(msgspec.Struct):
    text: str | None = None


class _Poll(msgspec.Struct):
    question: _PollText | None = None


class _Reference(msgspec.Struct):
    type: int = 0
    message_id: Name | None = None
    channel_id: Name | None = None


class _Forwarded(msgspec.Struct):
    content: str | None = None
    attachments: list[_Attachment] | None = None


class _Snapshot(msgspec.Struct):
    message: _Forwarded


class Message(msgspec.Struct):
    """A message, whole, or as much of it as an update says."""

    id: Name
    channel_id: Name | None = None
    lobby_id: Name | None = None
    type: int = 0
    author: Author | None = None
    member: _Member | None = None
    webhook_id: Name | None = None
    content: str | UnsetType | None = UNSET
    timestamp: Time | None = None
    edited_timestamp: Time | UnsetType | None = UNSET
    mentions: list[Author] | None = None
    attachments: list[_Attachment] | None = None
    embeds: list[_Embed] | None = None
    sticker_items: list[_Sticker] | None = None
    poll: _Poll | None = None
    message_reference: _Reference | None = None
    # null where it was deleted; absent where Discord did not look it up
    referenced_message: dict[str, object] | UnsetType | None = UNSET
    message_snapshots: list[_Snapshot] | None = None

    def kind(self) -> HolderKind:
        """Who wrote it: a webhook's author is no user, whatever it is called."""
        if self.author is not None and self.author.system:
            return HolderKind.SYSTEM
        is_bot = self.webhook_id is not None or bool(self.author and self.author.bot)
        return HolderKind.BOT if is_bot else HolderKind.USER

    def reply(self) -> str | None:
        """What it answers, where that is in the same channel and not deleted."""
        reference = self.message_reference
        if self.type != REPLY or reference is None or self.referenced_message is None:
            return None
        return reference.message_id if reference.channel_id in (None, self.channel_id) else None


def sent_at(field: str, snowflake: str) -> dt.datetime:
    """When the thing of this id was made. Raises Refused."""
    written = snowflake.isascii() and snowflake.isdigit() and len(snowflake) <= _SNOWFLAKE_DIGITS
    if not (written and int(snowflake) < 1 << _SNOWFLAKE_BITS):
        remedy = "send the id as Discord does, a string of up to 20 digits"
        raise Refused(Reason.INVALID_VALUE, field, "string that is no Discord id", remedy)
    return _SNOWFLAKE_EPOCH + dt.timedelta(milliseconds=int(snowflake) >> _MILLISECOND_BITS)


def moment(field: str, written: str) -> dt.datetime:
    """When an event was; webhook events write UTC without saying so. Raises Refused."""
    try:
        time = dt.datetime.fromisoformat(written)
        return time if time.tzinfo else time.replace(tzinfo=dt.UTC)
    except ValueError:
        remedy = "send it as Discord does: 2026-11-29T20:14:05.120000"
        raise Refused(Reason.INVALID_VALUE, field, "string that is no time", remedy) from None


def text(message: Message) -> str:
    """What it says: its content, else its embeds, its poll, or what it forwards. Raises Refused."""
    names = {each.id: each.shown() for each in message.mentions or ()}
    content = readable(message.content or "", names)
    if content.strip():
        return content
    said = [each for embed in message.embeds or () for each in (embed.title, embed.description) if each]
    if message.poll is not None and message.poll.question is not None:
        said.append(message.poll.question.text or "")
    said += [quoted(readable(one.message.content or "", names)) for one in message.message_snapshots or ()]
    found = "\n".join(said)
    if not found.strip() and not media(message):
        remedy = "give the bot the MESSAGE_CONTENT intent (Developer Portal, Bot), without which it is empty"
        raise Refused(Reason.EMPTY_TEXT, "content", "empty string", remedy)
    return found


def media(message: Message) -> tuple[Media, ...]:
    """Its files that are media, those it forwards, and its stickers."""
    files = list(message.attachments or ())
    for one in message.message_snapshots or ():
        files += one.message.attachments or ()
    found = [
        Media(kind, file.url, file.content_type, file.description)
        for file in files
        if (kind := modality(file.content_type, file.filename))
    ]
    found += [Media(Modality.MEME, description=each.name) for each in message.sticker_items or ()]
    return tuple(found)[:MAX_MEDIA]
