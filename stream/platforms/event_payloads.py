"""What a platform sends of its live events: one JSON object each, in a file one a line.

A payload is as msgspec decodes it: other decoders let half of a surrogate pair through.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from stream.platforms.lines import Line, RawLine, checked
from tracker.parsing import decode, refusal
from tracker.records import Reason, Record, Refused

T = TypeVar("T")

Result = Record | Refused

_OBJECT = msgspec.json.Decoder(dict[str, Any])


def converted(value: Any, form: type[T]) -> T:
    """The value as that form. Raises Refused, naming the field."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise refusal(error) from None


def results(records: Iterator[Record], names: Mapping[str, str]) -> Iterator[Result]:
    """The records, checked; what is refused, also while they are made, is called as the platform does."""
    try:
        for record in records:
            yield checked(record, names)
    except Refused as refused:
        yield refused
    except RecursionError:
        yield Refused(Reason.NOT_JSON, "value", "nested too deeply", "send the event as the platform does")


def read(lines: Iterable[RawLine], records: Callable[[Any], Iterator[Result]]) -> Iterator[Line]:
    """What each line's payload gives, in their order."""
    for line in lines:
        try:
            if isinstance(line.content, Refused):
                raise line.content
            payload = decode(line.content, _OBJECT)
        except Refused as refused:
            yield Line(line.number, refused)
            continue
        yield from (Line(line.number, result) for result in records(payload))


def whole(payload: Any) -> dict[str, Any]:
    """The payload, which is an object. Raises Refused."""
    if not isinstance(payload, dict):
        raise Refused(Reason.NOT_AN_OBJECT, "value", "no JSON object", "send one JSON object")
    return payload


def inner(given: dict[str, Any], field: str) -> dict[str, Any]:
    """The object in that field. Raises Refused."""
    if field not in given:
        raise Refused(Reason.MISSING_FIELD, field, "missing", f"add {field}")
    if not isinstance(given[field], dict):
        raise Refused(Reason.WRONG_TYPE, field, "no object", "send an object")
    return dict(given[field])
