"""MELD (scenes of a television series, English): emotion and sentiment of every utterance."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.datasets.files import naming, part_files, rows
from models.datasets.labels import emotion_of
from tracker.stances import Sentiment

SOURCE = "meld"
_PATTERNS = {part: f"**/{part}_sent_emo.csv" for part in ("train", "dev", "test")}
_COLUMNS = ("Utterance", "Speaker", "Emotion", "Sentiment", "Dialogue_ID", "Utterance_ID")


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """One dialogue a scene. Dialogue numbers restart in each part, utterance numbers have gaps."""
    for part, file in part_files(path, _PATTERNS, split):
        for number, scene in itertools.groupby(rows(file, *_COLUMNS), key=lambda row: row["Dialogue_ID"]):
            with naming(f"{file}: dialogue {number}"):
                turns = _turns(sorted(scene, key=lambda row: int(row["Utterance_ID"])))
            yield Dialogue(
                id=f"{SOURCE}-{part}-{number}",
                source=SOURCE,
                language="en",
                split=part,
                register="television scene",
                turns=turns,
            )


def _turns(scene: list[dict[str, str]]) -> tuple[LabelledTurn, ...]:
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
