"""A run's figures, one JSON object a line; a resumed run takes back what stands behind its checkpoint."""

from pathlib import Path
from typing import Any

import msgspec

FILE = "metrics.jsonl"


class Journal:
    """Appends to a run's metrics file."""

    def __init__(self, folder: Path, step: int) -> None:
        """Keep the lines up to `step`: what was computed after the checkpoint will be computed again."""
        self._path = folder / FILE
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        kept = [line for line in lines if _step(line) <= step]
        self._path.write_bytes(b"".join(line + b"\n" for line in kept))

    def write(self, kind: str, step: int, **figures: float) -> None:
        """Add a line."""
        line = {"kind": kind, "step": step} | {name: round(value, 6) for name, value in figures.items()}
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")


class Means:
    """Figures since they were last taken, by name: one batch's loss says little."""

    def __init__(self) -> None:
        self._seen: list[dict[str, float]] = []

    def add(self, figures: dict[str, float]) -> None:
        """What one step gave."""
        self._seen.append(figures)

    def take(self) -> dict[str, float]:
        """The means, each over the steps that gave it, and a new beginning."""
        seen, self._seen = self._seen, []
        by_name: dict[str, list[float]] = {}
        for figures in seen:
            for name, value in figures.items():
                by_name.setdefault(name, []).append(value)
        return {name: sum(values) / len(values) for name, values in by_name.items()}


def read(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The lines of a kind, in order."""
    lines = (folder / FILE).read_bytes().splitlines()
    decoded: list[dict[str, Any]] = [msgspec.json.decode(line) for line in lines]
    return [line for line in decoded if line["kind"] == kind]


def _step(line: bytes) -> float:
    """The line's step; a line that a kill cut short counts as never written."""
    try:
        return float(msgspec.json.decode(line)["step"])
    except (msgspec.DecodeError, KeyError):
        return float("inf")
