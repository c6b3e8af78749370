"""The open stance-flip benchmark: one dialogue a line, every turn labelled (open/GUIDELINES.md)."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.datasets.files import Malformed, MissingPart, check_part, decode_lines
from tracker.records import Media
from tracker.stances import Emotion, Expressed, Sentiment, Stance, TriggerKind

SOURCE = "benchmark"


class _Turn(msgspec.Struct):
    i: int
    speaker: str
    text: str
    emotion: Emotion
    sentiment: Sentiment
    expressed: Expressed
    stance: Stance
    flip: bool
    reply_to: int | None = None
    media: Media | None = None
    trigger: TriggerKind | None = None
    trigger_turns: list[int] = []
    rationale: str | None = None


class _Line(msgspec.Struct):
    id: str
    language: str
    proposition: str
    speakers: list[str]
    turns: list[_Turn]
    # A set that was kept back has no split and may only judge.
    split: str = "test"
    domain: str | None = None
    register: str | None = None


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """The dialogues of a .jsonl or .jsonl.gz file, or of every such file in a folder.

    Raises Malformed on a line of another form, MissingPart where there is no such file.
    """
    check_part(split)
    for file in _files(path):
        for line in decode_lines(file, _Line):
            if split in (None, line.split):
                yield _dialogue(file, line)


def _files(path: Path) -> list[Path]:
    files = [path] if path.is_file() else sorted((*path.glob("*.jsonl"), *path.glob("*.jsonl.gz")))
    if not files:
        raise MissingPart(f"{path}: no .jsonl or .jsonl.gz file here")
    return files


def _dialogue(file: Path, line: _Line) -> Dialogue:
    if [turn.i for turn in line.turns] != list(range(len(line.turns))):
        raise Malformed(f"{file}: {line.id}: turns are not counted from 0")
    if strangers := {turn.speaker for turn in line.turns} - set(line.speakers):
        raise Malformed(f"{file}: {line.id}: not among the speakers: {', '.join(sorted(strangers))}")
    return Dialogue(
        id=line.id,
        source=SOURCE,
        language=line.language,
        split=line.split,
        proposition=line.proposition,
        register=line.register,
        domain=line.domain,
        turns=tuple(_turn(turn) for turn in line.turns),
    )


def _turn(turn: _Turn) -> LabelledTurn:
    return LabelledTurn(
        index=turn.i,
        speaker=turn.speaker,
        text=turn.text,
        reply_to=turn.reply_to,
        media=(turn.media,) if turn.media else (),
        emotion=turn.emotion,
        sentiment=turn.sentiment,
        expressed=turn.expressed,
        stance=turn.stance,
        flip=turn.flip,
        trigger=turn.trigger,
        trigger_turns=tuple(turn.trigger_turns),
        rationale=turn.rationale,
    )
