"""Slack's workspace export: a folder or a .zip with channels.json, users.json, and a folder a channel.

https://slack.com/help/articles/220556107. Channels are called by their ids, as in Slack's events. Of an
edited message only the last text exists, so it is the turn's text, but where the export has logs of edits
and deletions: these are rows of their own.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from stream.platforms.documents import events, items
from stream.platforms.event_payloads import Result, converted, results
from stream.platforms.lines import Line
from stream.platforms.sayings import UNSAID, Sayings
from stream.platforms.slack_archives import Archive, Layout, opened
from stream.platforms.slack_messages import NAMES, Message, Person, records
from tracker.records import Name, Record, Refused


class _Channel(msgspec.Struct):
    id: Name
    name: str | None = None


class _Profile(msgspec.Struct):
    display_name: str | None = None
    real_name: str | None = None


class _User(msgspec.Struct):
    id: Name
    name: str | None = None
    real_name: str | None = None
    is_bot: bool = False
    profile: _Profile | None = None

    def person(self) -> Person:
        """As its messages show it."""
        profile = self.profile or _Profile()
        name = profile.display_name or profile.real_name or self.real_name or self.name
        return Person(name or None, self.is_bot)


class _Export:
    """What is known of an export while it is read."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._layout = Layout(archive.names())
        self._people: dict[str, Person] = {}
        self._channels: dict[str, str] = {}

    def lines(self) -> Iterator[Line]:
        number = 0
        for refused in self._learnt():
            yield Line(1, refused)
        for folder, days in self._layout.days().items():
            channel = self._channels.get(folder, folder)  # one of direct messages is called by its id
            for day in days:
                for row in self._rows(day):
                    number += 1
                    yield from (Line(number, result) for result in self._results(row, channel))

    def _learnt(self) -> Iterator[Refused]:
        """The names of channels and people; a row that is none is told, and costs its name alone."""
        for name in (*self._layout.lists(), self._layout.users()):
            for row in self._rows(name) if name else ():
                try:
                    if isinstance(row, Refused):
                        raise row
                    self._learn(row, is_user=name == self._layout.users())
                except Refused as refused:
                    yield refused

    def _learn(self, row: Any, *, is_user: bool) -> None:
        if is_user:
            user = converted(row, _User)
            self._people[user.id] = user.person()
        else:
            channel = converted(row, _Channel)
            self._channels[channel.name or channel.id] = channel.id

    def _rows(self, name: str) -> Iterator[Any]:
        """The objects of a file's array, one in memory at a time; where it is broken, it ends refused."""
        with self._archive.open(name) as stream:
            yield from _objects(stream, name)

    def _results(self, row: Any, channel: str) -> Iterator[Result]:
        return iter([row]) if isinstance(row, Refused) else results(self._records(row, channel), NAMES)

    def _records(self, row: Any, channel: str) -> Iterator[Record]:
        if row.get("type", "message") == "message":
            yield from records(converted(row, Message), channel, self._people)


def _objects(stream: BinaryIO, name: str) -> Iterator[Any]:
    try:
        yield from (row for _, row in items(events(stream), "item".__eq__, lambda part: None))
    except Refused as refused:
        yield Refused(refused.reason, name, refused.got, refused.remedy)


def recognises(path: Path) -> bool:
    """Whether the path is an export's folder or its .zip. Raises OSError."""
    if not path.is_dir() and path.suffix != ".zip":
        return False
    with opened(path) as archive:
        return Layout(archive.names()).is_export


def read_path(path: Path, said: Sayings = UNSAID) -> Iterator[Line]:
    """What each message gives, channel by channel; numbers count messages. Raises OSError."""
    with opened(path) as archive:
        yield from _Export(archive).lines()
