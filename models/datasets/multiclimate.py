"""MultiClimate (English): the stance of each sentence of videos about climate change.

A row stands for a frame, one in five seconds, with the sentence then spoken: it comes as often as it lasts.
"Oppose" here speaks of the harm climate change does, "support" of what is done about it: neither doubts it.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

from models.datasets.dialogue import Dialogue, LabelledTurn, proposition_about
from models.datasets.files import Malformed, MissingPart, check_part, rows
from tracker.records import Media, Modality
from tracker.stances import Expressed

SOURCE = "multiclimate"
FRAME_SECONDS = 5
LABELS = (("neutral", Expressed.NONE), ("support", Expressed.SUPPORT), ("oppose", Expressed.OPPOSE))
# The source's README names the videos of its parts; all others teach.
_DEV = frozenset({"CCGFS", "CCIAP", "CICC", "EFCC", "FIJI", "HCCAB", "HRDCC", "HUSNS", "MACC", "SAPFS"})
_TEST = frozenset({"ACCFP", "CCAH", "CCSAD", "CCUIM", "EIB", "EWCC", "GGCC", "SCCC", "TICC", "WICC"})


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """One monologue a video. Raises MissingPart where no video's folder is there."""
    check_part(split)
    # Only NAME/NAME.csv: beside it stand files of what other models predicted.
    files = [file for file in sorted(path.glob("**/*.csv")) if file.stem == file.parent.name]
    if not files:
        raise MissingPart(f"{path}: no NAME/NAME.csv here")
    for file in files:
        part = "dev" if file.stem in _DEV else "test" if file.stem in _TEST else "train"
        if split in (None, part):
            yield _dialogue(file, part)


def _dialogue(file: Path, part: str) -> Dialogue:
    frames = enumerate((row["label"].strip(), row["text"].strip()) for row in rows(file, "label", "text"))
    sentences = itertools.groupby(frames, key=lambda frame: frame[1])
    return Dialogue(
        id=f"{SOURCE}-{file.stem}",
        source=SOURCE,
        language="en",
        split=part,
        proposition=proposition_about("climate change", "en"),
        register="video, spoken",
        domain="climate change",
        turns=tuple(
            _turn(file, index, label, text, [number for number, _ in group])
            for index, ((label, text), group) in enumerate(sentences)
        ),
    )


def _turn(file: Path, index: int, label: str, text: str, frames: list[int]) -> LabelledTurn:
    if label not in ("0", "1", "2"):
        raise Malformed(f"{file}: no label {label!r}")
    word, expressed = LABELS[int(label)]
    return LabelledTurn(
        index=index,
        speaker="narrator",
        text=text,
        media=_clip(file.with_suffix(".mp4"), frames),
        expressed=expressed,
        label=word,
    )


def _clip(video: Path, frames: list[int]) -> tuple[Media, ...]:
    """The seconds of the video that belong to a sentence, as a media fragment (W3C: #t=from,to)."""
    if not video.is_file():
        return ()
    seconds = f"#t={frames[0] * FRAME_SECONDS},{(frames[-1] + 1) * FRAME_SECONDS}"
    return (Media(modality=Modality.VIDEO, uri=video.resolve().as_uri() + seconds, mime="video/mp4"),)
