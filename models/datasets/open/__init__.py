"""The open stance-flip dataset that comes with the project: CC BY 4.0, described in DATACARD.md."""

from collections.abc import Iterator
from importlib import resources

from models.datasets import benchmark
from models.datasets.dialogue import Dialogue

LANGUAGES = ("en", "zh", "es")


def open_dataset(language: str | None = None, split: str | None = None) -> Iterator[Dialogue]:
    """The shipped dialogues of one language and part, or all: train teaches, dev chooses, test only judges.

    Raises ValueError on an unknown language or part.
    """
    if language is not None and language not in LANGUAGES:
        raise ValueError(f"no language {language!r}: one of {', '.join(LANGUAGES)}, or None for all")
    for name in LANGUAGES if language is None else (language,):
        with resources.as_file(resources.files(__name__) / f"{name}.jsonl.gz") as path:
            yield from benchmark.load(path, split)
