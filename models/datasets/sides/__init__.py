"""The sides set that comes with the project: short dialogues, written to teach which side a turn takes.

All of it teaches: it has no part that chooses or judges. CC BY 4.0, described in DATACARD.md.
"""

from collections.abc import Iterator
from importlib import resources

from models.datasets import benchmark
from models.datasets.dialogue import Dialogue

LANGUAGES = ("en", "zh", "es")


def sides_dataset(split: str | None = None) -> Iterator[Dialogue]:
    """The dialogues of all languages; none where another part than train is asked for."""
    for name in LANGUAGES:
        with resources.as_file(resources.files(__name__) / f"{name}.jsonl.gz") as path:
            yield from benchmark.load(path, split)
