"""Media vectors and their captions, from a folder: what stage 1 learns from.

`pairs.jsonl` holds `{"id", "vector", "caption"}` a line; `vector` names a .npy or .safetensors file beside
it, of one vector, as a frozen encoder (ImageBind, 1024 numbers) gave it. No encoder runs here.
"""

from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file

FILE = "pairs.jsonl"


class MalformedPairs(ValueError):
    """A folder of pairs that cannot be read: the line or file, what is wrong, and the remedy."""


class Pair(msgspec.Struct, frozen=True):
    """A medium and what it shows."""

    id: str
    vector: bytes  # of float32 numbers: as Python's own they would take eight times the memory
    caption: str

    @property
    def numbers(self) -> NDArray[np.float32]:
        """The vector's."""
        return np.frombuffer(self.vector, dtype=np.float32)


class _Line(msgspec.Struct):
    id: str
    vector: str
    caption: Annotated[str, msgspec.Meta(min_length=1)]


def pairs(folder: Path) -> list[Pair]:
    """All pairs of a folder, in order. Raises MalformedPairs."""
    path = folder / FILE
    if not path.is_file():
        raise MalformedPairs(f"{folder} has no {FILE}; give it a line of id, vector and caption a medium")
    lines = path.read_bytes().splitlines()
    found = [_pair(folder, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise MalformedPairs(f"{path} is empty; give it a line of id, vector and caption a medium")
    if len({len(pair.vector) for pair in found}) > 1:
        raise MalformedPairs(f"{path}: vectors of different lengths; use one encoder's")
    return found


def _pair(folder: Path, number: int, line: bytes) -> Pair:
    try:
        read = msgspec.json.decode(line, type=_Line)
        return Pair(read.id, _checked(read.vector, _vector(folder / read.vector)), read.caption)
    except (msgspec.MsgspecError, SafetensorError, OSError, TypeError, ValueError) as error:
        raise MalformedPairs(f"{folder / FILE}:{number}: {error}; mend the line or its file") from None


def _vector(path: Path) -> torch.Tensor:
    if path.suffix == ".npy":
        return torch.from_numpy(np.load(path, allow_pickle=False)).float().flatten()
    tensors = [*load_file(path).values()]
    if len(tensors) != 1:
        raise ValueError(f"{path.name} holds {len(tensors)} tensors, not one")
    return tensors[0].float().flatten()


def _checked(file: str, vector: torch.Tensor) -> bytes:
    """One number that is none would spoil every weight of the projector."""
    if not len(vector) or not bool(vector.isfinite().all()):
        raise ValueError(f"{file} holds no vector of finite numbers")
    return vector.numpy().tobytes()
