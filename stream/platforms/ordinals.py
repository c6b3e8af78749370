"""Ids of turns where a platform gives none."""

import datetime as dt

from stream.platforms.recent import Recent
from tracker import keys

DIGITS = 32


class Ordinals:
    """Makes the same ids of the same file again, and of a longer export of the same conversation.

    An id is a hash of platform, conversation, speaker, time, text and an ordinal among equals. Equals stand
    near each other, for their times are equal, so those counted longest ago are forgotten.
    """

    def __init__(self) -> None:
        self._counts: Recent[int] = Recent()

    def turn(self, platform: str, conversation: str, speaker: str, sent_at: dt.datetime, text: str) -> str:
        """The id of the next turn."""
        equal = keys.digest(platform, conversation, speaker, sent_at.isoformat(), text, length=DIGITS)
        ordinal = self._counts.get((conversation, equal)) or 0
        self._counts.put((conversation, equal), ordinal + 1)
        return keys.digest(equal, str(ordinal), length=DIGITS)
