"""The data of a training run: dialogues by name, refused where their licence forbids what is shipped."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from models.datasets import benchmark
from models.datasets.dialogue import Dialogue
from models.datasets.open import open_dataset
from models.datasets.registry import check_training, load
from models.datasets.sides import sides_dataset
from tracker import keys

OPEN, SIDES = "open", "sides"


class NothingToLearn(ValueError):
    """The data have no dialogue of the part asked for."""


def dialogues(
    data: Sequence[str],
    split: str,
    *,
    language: str | None = None,
    research: bool = False,
    limit: int | None = None,
) -> list[Dialogue]:
    """The dialogues of one part, of each in turn: `open`, `sides`, a file, NAME=PATH of a source.

    `language` leaves out all others; a limit draws the same ones every time. Raises NothingToLearn,
    NotLicensed, UnknownSource, MissingPart.
    """
    named = [name for name, separator, _ in (item.partition("=") for item in data) if separator]
    check_training(named, research=research)
    found = [dialogue for item in data for dialogue in _load(item, split)]
    found = [dialogue for dialogue in found if language in {None, dialogue.language}]
    if not found:
        spoken = "" if language is None else f" in language {language!r}"
        raise NothingToLearn(f"{', '.join(data)}: no dialogues{spoken} in part {split}")
    if limit is not None and limit < len(found):
        # By hash, not the first ones: files come a language after the other.
        found = sorted(found, key=lambda dialogue: keys.digest(dialogue.id, length=12))[:limit]
    return found


def digest(examples: Iterable[msgspec.Struct]) -> str:
    """12 hex digits over all that a run learns from: resumed, it must learn from the same."""
    made = hashlib.sha256()
    for example in examples:
        made.update(msgspec.json.encode(example, order="deterministic"))
    return made.hexdigest()[:12]


def _load(item: str, split: str) -> Iterator[Dialogue]:
    name, separator, path = item.partition("=")
    if separator:
        return load(name, Path(path), split)
    if item == SIDES:
        return sides_dataset(split)
    return open_dataset(None, split) if item == OPEN else benchmark.load(Path(item), split)
