"""RECCON (over DailyDialog, English): each turn's emotion, and the words that caused it."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.datasets.files import decode, naming, part_files
from models.datasets.labels import Mention, emotion_of

SOURCE = "reccon"
_PATTERNS = {"train": "**/dailydialog_train.json", "dev": "**/dailydialog_valid.json"}
_PATTERNS["test"] = "**/dailydialog_test.json"
_LATENT = "b"  # stands where a cause lies outside the dialogue; its kind, latent, is in `cause_kinds`


class _Turn(msgspec.Struct):
    turn: int  # counted from 1
    speaker: str
    utterance: str
    emotion: str
    evidence: list[int | str] = msgspec.field(default_factory=list, name="expanded emotion cause evidence")
    spans: list[str] = msgspec.field(default_factory=list, name="expanded emotion cause span")
    kinds: list[str] = msgspec.field(default_factory=list, name="type")


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """One dialogue an entry, its turns counted from 0.

    DailyDialog's dialogues stand in XDailyDialog too, in other parts: compare `fingerprint`s before mixing.
    """
    for part, file in part_files(path, _PATTERNS, split):
        for name, (turns,) in decode(file, dict[str, tuple[list[_Turn]]]).items():
            with naming(f"{file}: {name}"):
                dialogue = _dialogue(part, name, turns)
            yield dialogue


def _dialogue(part: str, name: str, turns: list[_Turn]) -> Dialogue:
    if [turn.turn for turn in turns] != list(range(1, len(turns) + 1)):
        raise ValueError("turns are not counted from 1")
    return Dialogue(
        id=f"{SOURCE}-{name}",
        source=SOURCE,
        language="en",
        split=part,
        register="written dialogue of a language textbook",
        turns=tuple(
            LabelledTurn(
                index=index,
                speaker=turn.speaker,
                text=turn.utterance,
                emotion=emotion_of(turn.emotion),
                causes=tuple(_causes(turns, turn)),
                cause_kinds=tuple(turn.kinds),
            )
            for index, turn in enumerate(turns)
        ),
    )


def _causes(turns: list[_Turn], turn: _Turn) -> Iterator[Mention]:
    for number, span in zip(turn.evidence, turn.spans, strict=True):
        # A few causes are said to come after their effect: whoever reads live cannot have seen them.
        if number == _LATENT or not isinstance(number, int) or number > turn.turn:
            continue
        start = turns[number - 1].utterance.find(span)
        if number < 1 or start < 0:
            raise ValueError(f"turn {turn.turn}: {span!r} is not in turn {number}")
        yield Mention(span, number - 1, start, start + len(span))
