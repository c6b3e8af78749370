"""Choices freed of what a model prefers for nothing, as engine `generative` frees an untrained model's.

An untrained model has favourites among labels whatever it is shown. The same question about turns that say
nothing measures them, and they are divided out.
"""

import re
from collections.abc import Sequence

from models.language.chat import Chat, Message, Talk
from models.language.prompts import EARLIER
from models.language.scoring import LEAST_PRIOR

KEPT = 4096  # questions whose favourites are remembered
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_WINDOW = re.compile(rf"\n\n{EARLIER}(?:\n\d+\. .*)+")
_TURNS = re.compile(r"^\d+\. .*(?:\n\d+\. .*)*", re.MULTILINE)
_NOTHING = '"N/A"'
_SILENT_TURN = f"1. {_NOTHING}: {_NOTHING}"


class Impartial:
    """Chooses through another chat; each question is asked once more about nothing."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._favourites: dict[tuple[Talk, tuple[str, ...]], list[float]] = {}

    def choose(self, talks: Sequence[Talk], labels: Sequence[str]) -> list[list[float]]:
        """A probability a label, summing to 1."""
        about_nothing = [silenced(talk) for talk in talks]
        favourites = self._of(about_nothing, tuple(labels))
        shares = self._chat.choose(talks, labels)
        return [freed(row, favourites[talk]) for row, talk in zip(shares, about_nothing, strict=True)]

    def _of(self, talks: Sequence[Talk], labels: tuple[str, ...]) -> dict[Talk, list[float]]:
        new = [talk for talk in dict.fromkeys(talks) if (talk, labels) not in self._favourites]
        found = dict(zip(new, self._chat.choose(new, labels), strict=True))
        known = {talk: found[talk] if talk in found else self._favourites[talk, labels] for talk in talks}
        if len(self._favourites) + len(found) > KEPT:
            self._favourites.clear()
        self._favourites |= {(talk, labels): row for talk, row in found.items()}
        return known


def fair(chat: Chat) -> Chat | Impartial:
    """What chooses for a chat: itself, once it is trained, since training learns the labels' shares."""
    return Impartial(chat) if getattr(chat, "untrained", False) else chat


def silenced(talk: Talk) -> Talk:
    """The same question about one turn that says nothing: what stands in quotation marks is gone."""
    *before, asked = talk
    text = _WINDOW.sub("", _QUOTED.sub(_NOTHING, asked.content))
    return (*before, Message(asked.role, _TURNS.sub(_SILENT_TURN, text)))


def freed(shares: Sequence[float], favourites: Sequence[float]) -> list[float]:
    """Shares divided by what each label gets for nothing, summing to 1 again; no favourite counts as none."""
    weights = [share / max(prior, LEAST_PRIOR) for share, prior in zip(shares, favourites, strict=True)]
    return [weight / sum(weights) for weight in weights]
