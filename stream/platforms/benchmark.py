"""The open benchmark's form: one dialogue a line, with one proposition; labels are not needed and not read.

Turn ids are the indices as strings, and times count seconds from 1970, for the benchmark has neither.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from stream.platforms.declaring import target
from stream.platforms.lines import Line, RawLine
from tracker.parsing import decode
from tracker.records import EPOCH, CreateTurn, Media, Name, Reason, Record, Refused, check

Index = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class _Turn(msgspec.Struct):
    i: Index
    speaker: Name
    text: str
    reply_to: Index | None = None
    media: Media | None = None


class _Dialogue(msgspec.Struct):
    id: Name
    proposition: Name
    turns: list[_Turn]
    language: str | None = None


_DECODER = msgspec.json.Decoder(_Dialogue)
_NAMES = {
    "holder": "speaker",
    "turn": "i",
    "conversation": "id",
}  # the record's fields, as the file calls them


def read(lines: Iterable[RawLine]) -> Iterator[Line]:
    """A target and a turn for each of the file's turns; a dialogue that is refused gives one line."""
    return (Line(line.number, result) for line in lines for result in _results(line.content))


def _results(content: bytes | Refused) -> Iterator[Record | Refused]:
    if isinstance(content, Refused):
        yield content
        return
    try:
        dialogue = decode(content, _DECODER)
        yield target("default", dialogue.id, dialogue.proposition, EPOCH)
    except Refused as refused:
        yield refused
        return
    for index, turn in enumerate(dialogue.turns):
        yield _turn(dialogue, index, turn)


def _turn(dialogue: _Dialogue, index: int, turn: _Turn) -> Record | Refused:
    if turn.i != index:  # it would be another turn's repetition, and be lost without a word
        return Refused(Reason.INVALID_VALUE, f"turns[{index}].i", f"number {turn.i}", "count turns from 0")
    record = CreateTurn(
        conversation=dialogue.id,
        sent_at=EPOCH + dt.timedelta(seconds=index),
        turn=str(index),
        holder=turn.speaker,
        text=turn.text,
        reply_to=None if turn.reply_to is None else str(turn.reply_to),
        language=dialogue.language,
        media=(turn.media,) if turn.media else (),
    )
    try:
        return check(record)
    except Refused as refused:
        field = f"turns[{index}].{_NAMES.get(refused.field, refused.field)}"
        return Refused(refused.reason, field, refused.got, refused.remedy)
