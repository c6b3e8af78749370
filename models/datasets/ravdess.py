"""RAVDESS (English): acted speech; the file's name says the emotion, the sentence and the actor."""

from collections.abc import Iterator
from pathlib import Path

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.datasets.files import MissingPart, in_part, naming, part_by_hash
from models.datasets.labels import emotion_of
from tracker.records import Media, Modality

SOURCE = "ravdess"
EMOTIONS = ("neutral", "calm", "happy", "sad", "angry", "fearful", "disgust", "surprised")  # from 1
STATEMENTS = ("Kids are talking by the door", "Dogs are sitting by the door")  # from 1


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """One turn a recording; an actor is in one part, by hash. Raises MissingPart where none is there."""
    files = sorted(path.glob("**/03-01-*.wav"))  # 03: audio only; 01: spoken, not sung
    if not files:
        raise MissingPart(f"{path}: no 03-01-*.wav here")
    return in_part(map(_dialogue, files), split)


def _dialogue(file: Path) -> Dialogue:
    with naming(file):
        _, _, emotion, _, statement, _, actor = map(int, file.stem.split("-"))
        if not 1 <= emotion <= len(EMOTIONS) or not 1 <= statement <= len(STATEMENTS):
            raise ValueError("no such emotion or sentence")
    word = EMOTIONS[emotion - 1]
    media = Media(modality=Modality.AUDIO, uri=file.resolve().as_uri(), mime="audio/wav")
    turn = LabelledTurn(
        index=0,
        speaker=f"actor-{actor:02}",
        text=STATEMENTS[statement - 1],
        media=(media,),
        emotion=emotion_of(word),
        label=word,
    )
    return Dialogue(
        id=f"{SOURCE}-{file.stem}",
        source=SOURCE,
        language="en",
        split=part_by_hash(f"actor {actor}"),
        register="acted speech",
        group=turn.speaker,
        turns=(turn,),
    )
