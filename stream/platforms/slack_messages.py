"""Slack's messages as its events and its exports write them, and the records they become.

A message's `ts` is its id and its time. A reply stands in its thread's conversation, also where it is
broadcast to the channel; a thread's first message stands in the channel's. A thread is flat: no reply says
which one it answers.
"""

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from stream.platforms.event_media import modality
from stream.platforms.slack_text import Attachment, readable, words
from tracker.records import (
    EPOCH,
    MAX_MEDIA,
    CreateTurn,
    DeleteTurn,
    EditTurn,
    HolderKind,
    Media,
    Name,
    Reason,
    Record,
    Refused,
)

# What people and bots write; every other subtype is a row of Slack's own, or news of a message.
_TURNS = frozenset({None, "bot_message", "file_share", "me_message", "thread_broadcast"})
_TOMBSTONE = "tombstone"  # what is left of a deleted message that has a thread
_HIDDEN = "UREVOKEDU"  # who wrote it, where the organisation took its key back
_SLACKBOT = "USLACKBOT"
_TS = re.compile(r"(?P<seconds>[0-9]{1,11})(?:\.(?P<rest>[0-9]{1,6}))?")
NAMES = {"turn": "ts", "sent_at": "ts", "holder": "user", "conversation": "channel"}


class Person(msgspec.Struct, frozen=True):
    """What an export says of a user."""

    name: str | None = None
    is_bot: bool = False


People = Mapping[str, Person]
NOBODY: People = {}


class _Profile(msgspec.Struct):
    display_name: str | None = None
    real_name: str | None = None
    name: str | None = None

    def shown(self) -> str | None:
        return self.display_name or self.real_name or self.name


class _File(msgspec.Struct):
    mimetype: str | None = None
    permalink: str | None = None
    url_private: str | None = None
    alt_txt: str | None = None


class Message(msgspec.Struct):
    """A message, or news of one that was changed or deleted."""

    ts: Name
    subtype: str | None = None
    user: str | None = None
    bot_id: str | None = None
    username: str | None = None
    user_profile: _Profile | None = None
    bot_profile: _Profile | None = None
    text: str | None = None
    thread_ts: Name | None = None
    blocks: Any = None
    attachments: list[Attachment] | None = None
    files: list[_File] | None = None
    edited: dict[str, Any] | None = None
    deleted_ts: Name | None = None
    message: "Message | None" = None
    previous_message: "Message | None" = None
    original: "Message | None" = None  # as exports with logs of edits call the previous one

    def before(self) -> "Message | None":
        """The message as it was."""
        return self.previous_message or self.original


def records(message: Message, channel: str, people: People = NOBODY) -> Iterator[Record]:
    """None or one. Raises Refused."""
    if message.subtype == "message_changed":
        yield from _changed(message, channel, people)
    elif message.subtype == "message_deleted":
        yield _deleted(message, channel)
    elif message.subtype == "ekm_access_denied" or message.user == _HIDDEN:
        raise _hidden()
    elif message.subtype in _TURNS:
        yield _turn(message, channel, people)


def moment(field: str, ts: str) -> dt.datetime:
    """When a `ts` was. Raises Refused."""
    found = _TS.fullmatch(ts)
    if found is None:
        remedy = "send it as Slack does, a string of seconds and microseconds: 1790841600.000100"
        raise Refused(Reason.INVALID_VALUE, field, "string that is no Slack time", remedy)
    micros = int((found["rest"] or "0").ljust(6, "0"))
    return EPOCH + dt.timedelta(seconds=int(found["seconds"]), microseconds=micros)


def _turn(message: Message, channel: str, people: People) -> CreateTurn:
    holder = message.user or message.bot_id or message.username
    if not holder:
        raise Refused(Reason.MISSING_FIELD, "user", "missing", "add user, or bot_id of a bot")
    person = people.get(holder, Person())
    is_bot = message.bot_id or message.subtype == "bot_message" or person.is_bot or holder == _SLACKBOT
    profile = message.user_profile or message.bot_profile
    return CreateTurn(
        conversation=_conversation(message, channel),
        sent_at=moment("ts", message.ts),
        turn=message.ts,
        holder=holder,
        text=_text(message, people),
        holder_kind=HolderKind.BOT if is_bot else HolderKind.USER,
        display_name=message.username or person.name or (profile.shown() if profile else None),
        media=_media(message.files or []),
    )


def _changed(news: Message, channel: str, people: People) -> Iterator[Record]:
    """An edit where the words changed: a link that is unfolded changes a message, too."""
    message, before = news.message, news.before()
    if message is None:
        raise Refused(Reason.MISSING_FIELD, "message", "missing", "add message")
    if message.subtype == _TOMBSTONE:
        yield DeleteTurn(
            conversation=_conversation(message, channel), sent_at=moment("ts", news.ts), turn=message.ts
        )
    elif message.user == _HIDDEN:
        raise _hidden()
    elif message.subtype in _TURNS:
        text = _text(message, people)
        if (message.edited is None) if before is None else (text == _text(before, people)):
            return
        yield EditTurn(
            conversation=_conversation(message, channel),
            sent_at=moment("ts", news.ts),  # edited.ts knows seconds only: two edits within one are two
            turn=message.ts,
            text=text,
        )


def _deleted(news: Message, channel: str) -> DeleteTurn:
    if news.deleted_ts is None:
        raise Refused(Reason.MISSING_FIELD, "deleted_ts", "missing", "add deleted_ts")
    before = news.before()
    conversation = channel if before is None else _conversation(before, channel)
    return DeleteTurn(conversation=conversation, sent_at=moment("ts", news.ts), turn=news.deleted_ts)


def _conversation(message: Message, channel: str) -> str:
    in_channel = message.thread_ts in (None, message.ts)
    return channel if in_channel else f"{channel}/{message.thread_ts}"


def _text(message: Message, people: People) -> str:
    said = words(message.text, message.blocks, message.attachments or [])
    return readable(said, lambda user: people[user].name if user in people else None)


def _media(files: list[_File]) -> tuple[Media, ...]:
    found = (
        Media(kind, file.permalink or file.url_private, file.mimetype, file.alt_txt)
        for file in files
        if (kind := modality(file.mimetype))
    )
    return tuple(found)[:MAX_MEDIA]


def _hidden() -> Refused:
    remedy = "nothing to do until the organisation gives its key back; then send it again"
    return Refused(Reason.INVALID_VALUE, "user", "user whom Slack may not show", remedy)
