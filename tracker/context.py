"""The window: the few recent turns the reader is shown. Never the dialogue."""

from collections.abc import Mapping

import msgspec

from tracker.records import CreateTurn, Media
from tracker.stances import Expressed

WINDOW_TURNS = 12


class WindowTurn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A recent turn, as the reader may need it."""

    turn: str
    holder: str
    text: str
    reply_to: str | None = None
    media: tuple[Media, ...] = ()
    language: str | None = None
    sides: Mapping[str, Expressed] = {}  # that it was read to take, by target; none where it took none


Window = tuple[WindowTurn, ...]  # oldest first, at most WINDOW_TURNS


def remembered(record: CreateTurn) -> WindowTurn:
    """The turn as the window keeps it."""
    return WindowTurn(record.turn, record.holder, record.text, record.reply_to, record.media, record.language)


def extended(window: Window, turn: WindowTurn) -> Window:
    """The window after `turn`: the oldest falls out."""
    return (*window, turn)[-WINDOW_TURNS:]


def find(window: Window, turn: str | None) -> WindowTurn | None:
    """The turn of that id, if it is still in the window."""
    return next((seen for seen in reversed(window) if seen.turn == turn), None) if turn else None
