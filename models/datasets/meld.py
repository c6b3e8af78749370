"""MELD (scenes of a television series, English): emotion and sentiment of every utterance."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.datasets.files import Malformed, part_files, rows
from models.datasets.labels import emotion_of
from tracker.stances import Sentiment

SOURCE = "meld"
_PATTERNS = {part: f"**/{part}_sent_emo.csv" for part in ("train", "dev", "test")}
_COLUMNS = ("Utterance", "Speaker", "Emotion", "Sentiment", "Dialogue_ID", "Utterance_ID")


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """One dialogue a scene. Dialogue numbers restart in each part, utterance numbers have gaps."""
    for part, file in part_files(path, _PATTERNS, split):
        for number, scene in itertools.groupby(rows(file, *_COLUMNS), key=lambda row: row["Dialogue_ID"]):
            yield Dialogue(
                id=f"{SOURCE}-{part}-{number}",
                source=SOURCE,
                language="en",
                split=part,
                register="television scene",
                turns=_turns(file, sorted(scene, key=lambda row: int(row["Utterance_ID"]))),
            )


def _turns(file: Path, scene: list[dict[str, str]]) -> tuple[LabelledTurn, ...]:
    try:
        return tuple(
            LabelledTurn(
                index=index,
                speaker=row["Speaker"].strip(),
                text=row["Utterance"].strip(),
                emotion=emotion_of(row["Emotion"]),
                sentiment=Sentiment(row["Sentiment"].strip().lower()),
            )
            for index, row in enumerate(scene)
        )
    except ValueError as error:
        raise Malformed(f"{file}: dialogue {scene[0]['Dialogue_ID']}: {error}") from error
