"""Reading sources: parts by file name or by hash, JSON, JSONL and CSV, with refusals that name the file."""

import csv
import gzip
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from models.datasets.dialogue import Dialogue

T = TypeVar("T")

PARTS = ("train", "dev", "test")


class Malformed(ValueError):
    """A file that does not have its source's form."""


class MissingPart(FileNotFoundError):
    """A part was asked for that the given path does not hold."""


@contextmanager
def naming(place: object) -> Iterator[None]:
    """Turns a ValueError into Malformed that says where. Raises Malformed."""
    try:
        yield
    except ValueError as error:
        raise Malformed(f"{place}: {error}") from error


def check_part(split: str | None) -> None:
    """Raises ValueError where `split` is neither None nor one of PARTS: a slip must not read as empty."""
    if split is not None and split not in PARTS:
        raise ValueError(f"no part {split!r}: one of {', '.join(PARTS)}, or None for all")


def part_files(root: Path, patterns: Mapping[str, str], split: str | None) -> Iterator[tuple[str, Path]]:
    """Each file of the parts asked for, with its part; `patterns` are globs under `root`, a part each.

    Raises MissingPart where the part, or for None every part, has no file.
    """
    check_part(split)
    wanted = {part: glob for part, glob in patterns.items() if split in (None, part)}
    found = [(part, path) for part, glob in wanted.items() for path in sorted(root.glob(glob))]
    if not found:
        raise MissingPart(
            f"{root}: nothing like {', '.join(wanted.values()) or 'a ' + str(split) + ' part'} here"
        )
    yield from found


def one_file(root: Path, name: str) -> Path:
    """The file of that name under `root`, or `root` itself where it is a file. Raises MissingPart."""
    path = root if root.is_file() else root / name
    if not path.is_file():
        raise MissingPart(f"{path}: no such file")
    return path


def part_by_hash(key: str) -> str:
    """A part for sources without any: 80 % train, 10 % dev, 10 % test, the same on every machine."""
    bucket = int.from_bytes(hashlib.sha256(key.encode()).digest()) % 10
    return "test" if bucket == 9 else "dev" if bucket == 8 else "train"


def short_hash(*parts: str) -> str:
    """Twelve hex digits that name a group of dialogues."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]


def in_part(dialogues: Iterator[Dialogue], split: str | None) -> Iterator[Dialogue]:
    """The dialogues of one part, or all. Raises ValueError on an unknown part."""
    check_part(split)
    return (dialogue for dialogue in dialogues if split in (None, dialogue.split))


def decode(path: Path, kind: type[T]) -> T:
    """A JSON file as `kind`. Raises Malformed."""
    with naming(path):  # msgspec's errors and UnicodeDecodeError are ValueErrors
        return msgspec.json.decode(path.read_bytes(), type=kind)


def decode_lines(path: Path, kind: type[T]) -> Iterator[T]:
    """The lines of a JSONL file, gzipped or not; blank lines are skipped. Raises Malformed."""
    decoder = msgspec.json.Decoder(kind)
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                with naming(f"{path}:{number}"):
                    decoded = decoder.decode(line)
                yield decoded


def rows(path: Path, *columns: str) -> Iterator[dict[str, str]]:
    """The rows of a CSV file that has these columns, every cell a string. Raises Malformed."""
    # utf-8-sig: spreadsheet programs put a mark before the first column's name, which would hide it
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        if missing := set(columns) - set(reader.fieldnames or ()):
            raise Malformed(f"{path}: no column {', '.join(sorted(missing))}")
        for row in reader:
            if None in row or None in row.values():
                raise Malformed(f"{path}:{reader.line_num}: more or fewer cells than columns")
            yield row
