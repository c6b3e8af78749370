"""The parts of a data set that get figures of their own: by language, register and length of dialogue."""

from collections.abc import Iterator

from models.datasets import registers
from models.datasets.dialogue import Dialogue

ALL = "all"
LENGTHS = ((6, "1-6"), (9, "7-9"), (13, "10-13"), (20, "14-20"))  # at most so many turns
LONG = "21+"


def groups(dialogue: Dialogue) -> Iterator[str]:
    """The parts that a dialogue belongs to, as `kind=name`; always `all`."""
    yield ALL
    yield f"language={dialogue.language}"
    if dialogue.register is not None:
        yield f"register={registers.family(dialogue.register)}"
        yield f"typing={'messy' if registers.messy(dialogue.register) else 'tidy'}"
    yield f"turns={length(len(dialogue.turns))}"


def length(turns: int) -> str:
    """The class of a dialogue's length."""
    return next((name for most, name in LENGTHS if turns <= most), LONG)
