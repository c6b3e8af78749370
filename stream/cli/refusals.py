"""Saying refused lines of a file: file, line, field, what stood there, and the remedy."""

from rich.console import Console

from tracker.records import Refused


class StrictFailure(Exception):
    """A refused line, under --strict."""


class Refusals:
    """Says and counts refused lines on standard error. Raises StrictFailure at the first under --strict."""

    def __init__(self, name: str, strict: bool, console: Console | None = None) -> None:
        self._name, self._strict, self.count = name, strict, 0
        self._console = console or Console(stderr=True)

    def __call__(self, number: int, refused: Refused) -> None:
        """Say one."""
        self.count += 1
        said = f"{self._name}:{number}: {refused.field}: {refused.got}; {refused.remedy}"
        self._console.print(said, markup=False, highlight=False, soft_wrap=True)
        if self._strict:
            raise StrictFailure
