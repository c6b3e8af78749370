"""What Twitch's IRC and its EventSub say alike: who speaks, and what a line of chat is.

A room is its broadcaster's id, and a message's id is the same in both, so that both give the same turns. An
emote is its name in the text.
"""

import re
from collections.abc import Iterable

from tracker.records import HolderKind

_BOTS = frozenset({"bot-badge"})
_MODERATORS = frozenset({"broadcaster", "moderator", "lead_moderator", "staff", "admin", "global_mod"})
_ACTION = re.compile(r"\x01ACTION (?P<said>.*?)\x01?", re.DOTALL)  # "/me waves"


def kind_of(badges: Iterable[str]) -> HolderKind:
    """Who wears these badges."""
    worn = frozenset(badges)
    if worn & _BOTS:
        return HolderKind.BOT
    return HolderKind.MODERATOR if worn & _MODERATORS else HolderKind.USER


def words(text: str, answered: str | None = None) -> str:
    """What a person wrote: no sign of an action, no name of who is answered, which clients put before."""
    action = _ACTION.fullmatch(text)
    said = action["said"] if action else text
    return said.removeprefix(f"@{answered} ") if answered else said
