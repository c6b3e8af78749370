"""PersuasionForGood (English): one asks the other to give to a charity; sentences with dialogue acts."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.datasets.files import decode_lines, in_part, one_file, part_by_hash
from tracker.stances import Expressed

SOURCE = "persuasionforgood"
PROPOSITION = "The debate concerning whether the persuadee should donate to Save the Children"
PERSUADER, PERSUADEE = "persuader", "persuadee"

# Only what decides: a positive or negative reaction is often politeness, "disagree-donation-more" refuses a
# larger gift and not the gift. These stay in `acts`.
_POSITIONS = {"agree-donation": Expressed.SUPPORT, "disagree-donation": Expressed.OPPOSE}
_NO_POSITION = frozenset(
    {"greeting", "closing", "off-task", "you-are-welcome", "ask-org-info"}
    | {"personal-related-inquiry", "task-related-inquiry", "ask-persuader-donation-intention"}
)


class _Sentence(msgspec.Struct):
    """A row; its neg, neu and pos are a lexicon's scores, not labels, and are not read."""

    B2: str  # the dialogue
    B4: int  # 0 persuader, 1 persuadee
    Turn: int
    Unit: str
    er_label_1: str | None = None
    ee_label_1: str | None = None
    er_label_2: str | None = None
    ee_label_2: str | None = None


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """The annotated dialogues, in file order, which is time's: turn numbers are not. Parts are by hash."""
    sentences = decode_lines(one_file(path, "annotated.jsonl"), _Sentence)
    by_dialogue = itertools.groupby(sentences, key=lambda sentence: sentence.B2)
    return in_part((_dialogue(name, list(group)) for name, group in by_dialogue), split)


def _dialogue(name: str, sentences: list[_Sentence]) -> Dialogue:
    messages = itertools.groupby(sentences, key=lambda sentence: (sentence.Turn, sentence.B4))
    return Dialogue(
        id=f"{SOURCE}-{name}",
        source=SOURCE,
        language="en",
        split=part_by_hash(name),
        proposition=PROPOSITION,
        register="crowd workers' chat",
        domain="charity",
        turns=tuple(_turn(index, list(message)) for index, (_, message) in enumerate(messages)),
    )


def _turn(index: int, sentences: list[_Sentence]) -> LabelledTurn:
    labels = (
        label
        for row in sentences
        for label in (row.er_label_1, row.er_label_2, row.ee_label_1, row.ee_label_2)
        if label
    )
    acts = tuple(dict.fromkeys(labels))
    persuadee = sentences[0].B4 == 1
    return LabelledTurn(
        index=index,
        speaker=PERSUADEE if persuadee else PERSUADER,
        text=" ".join(sentence.Unit.strip() for sentence in sentences),
        reply_to=index - 1 if index else None,
        expressed=_expressed(acts) if persuadee else None,
        acts=acts,
    )


def _expressed(acts: tuple[str, ...]) -> Expressed | None:
    """None where the acts leave the persuadee's position open, or contradict each other."""
    positions = {_POSITIONS[act] for act in acts if act in _POSITIONS}
    if len(positions) == 1:
        return positions.pop()
    return Expressed.NONE if acts and _NO_POSITION.issuperset(acts) else None
