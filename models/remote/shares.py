"""A label's probability out of an answer's tokens and what else the server says could have stood there.

Servers tell the likeliest tokens of all, so what is no label is left out and the rest sums to 1. Where a
token leaves several labels open ("ne" of neutral and negative), the next one of the answer decides among
them; an alternative that leaves several open is shared evenly, as nobody tells how it would have gone on.
A label that is not told may be as likely as the least that is, but no likelier than the one chosen before it:
it gets half of that. A server that tells nothing gives 1 to what it named.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from models.remote.wire import THOUGHT, Alternative, Token


@dataclass(frozen=True)
class _Open:
    """What a token's alternatives leave: mass by label, and the share of the answer's own, yet undecided."""

    shares: dict[str, float]
    undecided: float


def shares(
    tokens: Sequence[Token], content: str, at: int, labels: Sequence[str], named: str
) -> dict[str, float]:
    """A probability a label, in order; the answer says `named` at character `at` of `content`."""
    found, left = dict.fromkeys(labels, 0.0), 1.0
    open_labels, said = list(labels), ""
    # Up to the label's end: behind it a letter may be cut between two tokens, which then say no such text.
    for place, inside in _places(tokens, content[: at + len(named)], at):
        token = tokens[place]
        now = _split(token, token.said[:inside], said, open_labels)
        for label, share in now.shares.items():
            found[label] += left * share
        left *= now.undecided
        said += token.said[inside:]
        open_labels = [label for label in open_labels if _fits(label, said, ended=not token.said)]
        if len(open_labels) < 2 or not left:
            break
    found[named] += left
    return found


def _places(tokens: Sequence[Token], content: str, at: int) -> list[tuple[int, int]]:
    """The tokens from the one that holds `at` on, each with where in it the label (or its rest) begins."""
    ends = list(accumulate(len(token.said) for token in tokens))
    said = "".join(token.said for token in tokens)
    begin = said.find(content, max(said.rfind(THOUGHT), 0))  # templates may put marks before
    if begin < 0 or not content:
        return []
    wanted = begin + at
    first = next((place for place, end in enumerate(ends) if end > wanted), len(tokens))
    return [
        (place, max(0, wanted - (ends[place] - len(tokens[place].said))))
        for place in range(first, len(tokens))
    ]


def _split(token: Token, lead: str, said: str, labels: Sequence[str]) -> _Open:
    """How the labels share what follows `said`: by this token's alternatives that begin with `lead`."""
    masses: dict[str, float] = dict.fromkeys(labels, 0.0)
    undecided, untold = 0.0, set(labels)
    for other in _alternatives(token):
        mass, fits = math.exp(other.logprob), _fitting(other, lead, said, labels)
        untold.difference_update(fits)
        if len(fits) > 1 and other.said == token.said:
            undecided += mass
        else:
            for label in fits:
                masses[label] += mass / len(fits)
    if not (sum(masses.values()) + undecided):
        return _Open({}, 1.0)
    masses.update(dict.fromkeys(untold, _least(token) / 2))
    total = sum(masses.values()) + undecided
    return _Open({label: mass / total for label, mass in masses.items()}, undecided / total)


def _alternatives(token: Token) -> list[Alternative]:
    """The token itself first: what a grammar chose need not be among the likeliest."""
    return [token, *(other for other in token.top_logprobs if other.said != token.said)]


def _least(token: Token) -> float:
    """The most that a token which is not told can have."""
    told = [other.logprob for other in token.top_logprobs]
    return math.exp(min(token.logprob, *told)) if told else 0.0


def _fitting(other: Alternative, lead: str, said: str, labels: Sequence[str]) -> list[str]:
    if not other.said.startswith(lead) or (lead and other.said == lead):
        return []
    whole = said + other.said[len(lead) :]
    return [label for label in labels if _fits(label, whole, ended=not other.said)]


def _fits(label: str, said: str, *, ended: bool) -> bool:
    """Whether what was said may be, or become, this label; an empty token ends the answer."""
    label, said = label.casefold(), said.casefold()
    if ended or len(said) > len(label):
        return said.startswith(label) and not said[len(label) : len(label) + 1].isalnum()
    return label.startswith(said)
