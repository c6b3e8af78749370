"""Whether what a reader gives would be taken from the turns topic."""

from stream.platforms import Line
from tests.stream.platforms.mutations import sound
from tracker.parsing import parse
from tracker.records import Refused, encode


def taken(lines: list[Line]) -> None:
    """They are sound, and every record is read back from its bytes as it is."""
    sound(lines)
    for line in lines:
        assert isinstance(line.result, Refused) or parse(encode(line.result)) == line.result
