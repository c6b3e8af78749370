"""DiaASQ (phone forums, Chinese and its English translation): target-aspect-opinion-sentiment quadruples.

Offsets count tokens of the whole dialogue, its sentences joined by spaces. Chinese has a space between any
two characters, which no one types: it is taken out, and offsets become characters of one turn's text.
"""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.datasets.files import decode, naming, part_files
from models.datasets.labels import Mention, Opinion
from tracker.stances import Sentiment

SOURCE = "diaasq"
_PATTERNS = {"train": "jsons_*/train.json", "dev": "jsons_*/valid.json", "test": "jsons_*/test.json"}
# The paper scores what is neither positive nor negative as one third class; -1: an incomplete quadruple.
_SENTIMENTS: dict[str | int, Sentiment | None] = {
    "pos": Sentiment.POSITIVE,
    "neg": Sentiment.NEGATIVE,
    "neu": Sentiment.NEUTRAL,
    "amb": Sentiment.NEUTRAL,
    "doubt": Sentiment.NEUTRAL,
    -1: None,
}

_Quadruple = tuple[int, int, int, int, int, int, str | int, str, str, str]


class _Dialogue(msgspec.Struct):
    doc_id: str
    sentences: list[str]
    replies: list[int]
    speakers: list[int]
    triplets: list[_Quadruple]  # their name for them


class Joined(NamedTuple):
    """A sentence as people type it, and where in it each token stands."""

    text: str
    places: list[tuple[int, int]]


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """The dialogues of every language there; a dialogue and its translation are one group."""
    for part, file in part_files(path, _PATTERNS, split):
        language = file.parent.name.removeprefix("jsons_")
        for raw in decode(file, list[_Dialogue]):
            with naming(f"{file}: {raw.doc_id}"):
                dialogue = _dialogue(part, language, raw)
            yield dialogue


def join(sentence: str, language: str) -> Joined:
    """The tokens put together; in Chinese a space stays only between two words or two numbers."""
    text, places, before = "", list[tuple[int, int]](), ""
    for token in sentence.split():
        text += " " if before and (language != "zh" or _apart(before, token)) else ""
        places.append((len(text), len(text) + len(token)))
        text += token
        before = token
    return Joined(text, places)


def _apart(before: str, token: str) -> bool:
    ascii_only = before.isascii() and token.isascii()
    return ascii_only and ((before.isalpha() and token.isalpha()) or (before.isdigit() and token.isdigit()))


def _dialogue(part: str, language: str, raw: _Dialogue) -> Dialogue:
    joined = [join(sentence, language) for sentence in raw.sentences]
    return Dialogue(
        id=f"{SOURCE}-{language}-{raw.doc_id}",
        source=SOURCE,
        language=language,
        split=part,
        register="forum thread",
        domain="phones",
        group=f"{SOURCE}-{raw.doc_id}",
        turns=tuple(
            LabelledTurn(
                index=index,
                speaker=f"u{speaker}",
                text=sentence.text,
                reply_to=reply if reply >= 0 else None,
            )
            for index, (sentence, reply, speaker) in enumerate(
                zip(joined, raw.replies, raw.speakers, strict=True)
            )
        ),
        opinions=tuple(_opinion(joined, quadruple) for quadruple in dict.fromkeys(raw.triplets)),
    )


def _opinion(joined: list[Joined], quadruple: _Quadruple) -> Opinion:
    polarity = quadruple[6]
    if polarity not in _SENTIMENTS:
        raise ValueError(f"no sentiment {polarity!r}")
    return Opinion(
        target=_mention(joined, *quadruple[0:2]),
        aspect=_mention(joined, *quadruple[2:4]),
        opinion=_mention(joined, *quadruple[4:6]),
        sentiment=_SENTIMENTS[polarity],
    )


def _mention(joined: list[Joined], start: int, end: int) -> Mention | None:
    """The place of tokens `start` to `end` of the dialogue; None where the element is missing (-1)."""
    if start < 0 or end < 0:
        return None
    ends = list(accumulate(len(sentence.places) for sentence in joined))
    turn = next((turn for turn, last in enumerate(ends) if start < last), None)
    if turn is None or not start < end <= ends[turn]:
        raise ValueError(f"tokens {start} to {end} are not in one turn")
    text, places = joined[turn]
    first = ends[turn] - len(places)
    left, right = places[start - first][0], places[end - 1 - first][1]
    return Mention(text[left:right], turn, left, right, explicit=True)
