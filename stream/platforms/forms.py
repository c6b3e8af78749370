"""What a form of file is: its name, how it is known, and how it is read."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from stream.platforms.lines import Line, RawLine, raw_lines
from stream.platforms.samples import Sample
from stream.platforms.sayings import Sayings

Recognise = Callable[[Sample], bool]
ReadLines = Callable[[Iterable[RawLine], Sayings], Iterator[Line]]
ReadDocument = Callable[[BinaryIO, Sayings], Iterator[Line]]
ReadPath = Callable[[Path, Sayings], Iterator[Line]]


class UnknownForm(ValueError):
    """A form that no reader reads, or not from there."""


class Form(msgspec.Struct, frozen=True):
    """A form of file; it is read by lines, as one document, or from its path: one of them is there."""

    name: str
    recognises: Recognise
    lines: ReadLines | None = None
    document: ReadDocument | None = None
    path: ReadPath | None = None

    def read(self, stream: BinaryIO, sample: Sample, said: Sayings) -> Iterator[Line]:
        """What stands in a file, from its beginning. Raises UnknownForm, Refused and OSError."""
        if self.path is not None:
            if sample.path is None:
                raise UnknownForm(f"{self.name} is read from a path, not from a stream")
            return self.path(sample.path, said)
        if self.document is not None and (self.lines is None or sample.is_document):
            return self.document(stream, said)
        assert self.lines is not None
        return self.lines(raw_lines(stream), said)
