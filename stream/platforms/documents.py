"""A file that is one JSON document, read as it comes: only one of its items is in memory at a time."""

import codecs
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import ijson

from tracker.records import Reason, Refused

Event = tuple[str, str, Any]  # where (`messages.item.id`), what (`start_map`, `string`, ...), value

MAX_DEPTH = 64  # a place's name is as long as it is deep, so depth is work

_PIECE = 1 << 16
_STARTS, _ENDS = frozenset({"start_map", "start_array"}), frozenset({"end_map", "end_array"})
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|.)", re.DOTALL)
_CUT_ESCAPE = re.compile(rb"(?<!\\)(\\+)(?:x[0-9A-Fa-f]?)?\Z")


class Repaired:
    r"""A stream of JSON as some platforms write it, mended on the way.

    Telegram writes control characters as `\x1F`, which JSON does not know: it becomes `\u001F`. A byte that
    is no UTF-8 becomes U+FFFD, and a byte order mark goes, since either would end the reading of the whole
    file.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._cut, self._ended = stream, b"", False
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")

    def read(self, size: int = _PIECE) -> bytes:
        """The next bytes, about as many; none at the end. Raises OSError."""
        mended = b""
        while size and not mended and not self._ended:
            mended = self._next(size)
        return mended

    def _next(self, size: int) -> bytes:
        raw = self._stream.read(size)
        self._ended = not raw
        piece = self._cut + self._decoder.decode(raw, final=self._ended).encode()
        self._cut = b""
        if not self._ended and (cut := _CUT_ESCAPE.search(piece)) and len(cut[1]) % 2:
            at = cut.end(1) - 1
            piece, self._cut = piece[:at], piece[at:]
        return _ESCAPE.sub(lambda found: b"\\u00" + found[1] if found[1] else found[0], piece)


def events(stream: BinaryIO) -> Iterator[Event]:
    """The document's parts in their order. Raises Refused where it is broken or too deep, and OSError."""
    containers, here = [""], ""
    try:
        for what, value in ijson.basic_parse(Repaired(stream), use_float=True, multiple_values=True):
            if what == "map_key":
                yield containers[-1], what, value
                here = _joined(containers[-1], value)
            elif what in _ENDS:
                here = containers.pop()
                yield here, what, value
            else:
                yield here, what, value
                if what in _STARTS:
                    containers.append(here)
                    here = _joined(here, "item") if what == "start_array" else here
            if len(containers) > MAX_DEPTH:
                remedy = f"at most {MAX_DEPTH} arrays and objects in each other"
                raise Refused(Reason.NOT_JSON, "value", "nested too deeply", remedy)
    except ijson.JSONError as error:
        got = _without_content(str(error))
        raise Refused(Reason.NOT_JSON, "value", got, "export or fetch it again") from None


def _joined(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def items(
    parts: Iterator[Event], wanted: Callable[[str], bool], seen: Callable[[Event], None]
) -> Iterator[tuple[str, Any]]:
    """The objects at the places that are wanted, with their places; every other part is shown to `seen`."""
    building, at = None, ""
    for part in parts:
        where, what, value = part
        if building is None and what == "start_map" and wanted(where):
            building, at = ijson.ObjectBuilder(), where
        if building is None:
            seen(part)
            continue
        building.event(what, value)
        if what == "end_map" and where == at:
            yield at, building.value
            building = None


def _without_content(message: str) -> str:
    """What the parser says of a file, without what it quotes of it."""
    said = message.removeprefix("b'").split("\n", 1)[0].split("\\n", 1)[0]
    return said.split(": ", 1)[-1].strip() or "no JSON"
