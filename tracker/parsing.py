"""From the raw bytes of a turns topic's record to a Record, or a refusal that says how to mend it."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

import msgspec

from tracker import keys
from tracker.records import (
    ClearTurns,
    CreateTurn,
    DeclareTarget,
    DeleteTurn,
    EditTurn,
    EraseHolder,
    HolderKind,
    Modality,
    OverrideStance,
    Reason,
    Record,
    Refused,
    TargetStatus,
    check,
)
from tracker.stances import Stance

T = TypeVar("T")

RFC_3339 = "write RFC 3339 with Z or an offset: 2026-11-29T20:14:05Z"
_SHOWN = 40  # characters of a wrong word that a refusal repeats


class _Op(msgspec.Struct):
    op: str = "create"


_OPS: dict[str, type[Record]] = {
    "create": CreateTurn,
    "edit": EditTurn,
    "delete": DeleteTurn,
    "clear": ClearTurns,
    "target": DeclareTarget,
    "override": OverrideStance,
    "erase": EraseHolder,
}
_OP_DECODER = msgspec.json.Decoder(_Op)
_DECODERS: dict[str, msgspec.json.Decoder[Record]] = {op: msgspec.json.Decoder(of) for op, of in _OPS.items()}

_WORDS: Mapping[str, type[StrEnum]] = {
    "holder_kind": HolderKind,
    "modality": Modality,
    "status": TargetStatus,
    "to": Stance,
}
_KINDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
    "datetime": "a time as RFC 3339 string: 2026-11-29T20:14:05Z",
}
_EXPECTED = re.compile(r"^Expected `(?P<expected>[^`]+)`, got `(?P<got>[^`]+)`")
_MISSING = re.compile(r"^Object missing required field `(?P<field>[^`]+)`")
_LIMIT = re.compile(r"^Expected `(?P<kind>\w+)` (?P<length>of length )?(?P<sign>[<>]=) (?P<limit>\d+)")
_WORD = re.compile(r"^Invalid (?:enum )?value '?(?P<word>.*?)'?$", re.DOTALL)
# msgspec calls a lone surrogate near the end "truncated", so the bytes are asked.
_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPES = re.compile(rb"\\\\|(?P<pair>%b%b)|(?P<lone>%b|%b)" % (_HIGH, _LOW, _HIGH, _LOW))


def parse(raw: bytes | None) -> Record:
    """The record in `raw`. Raises Refused."""
    op = decode(raw, _OP_DECODER).op
    if op not in _DECODERS:
        raise Refused(Reason.UNKNOWN_OP, "op", f"string {op[:_SHOWN]!r}", f"one of {', '.join(_DECODERS)}")
    return check(decode(raw, _DECODERS[op]))


def parse_keyed(key: bytes | None, raw: bytes | None) -> Record:
    """As `parse`, and the Kafka key is the conversation's. Raises Refused."""
    record = parse(raw)
    expected = keys.conversation_key(record.tenant, record.conversation)
    if key != expected:
        got = "no key" if key is None else f"key of {len(key)} bytes"
        raise Refused(
            Reason.WRONG_KEY,
            "key",
            got,
            "use <tenant>/<conversation>, each part percent-encoded: order depends on it",
        )
    return record


def decode(raw: bytes | None, decoder: msgspec.json.Decoder[T]) -> T:
    """What the decoder finds in `raw`. Raises Refused in the words of a record's refusal."""
    if raw is None:
        raise Refused(Reason.NULL, "value", "null", "send a record; a turn is taken back by op delete")
    try:
        raw.decode()
        return decoder.decode(raw)
    except UnicodeDecodeError as error:
        raise Refused(
            Reason.NOT_UTF8, "value", f"byte {error.start} is no UTF-8", "encode JSON as UTF-8"
        ) from None
    except msgspec.ValidationError as error:
        raise refusal(error) from None
    except RecursionError:
        raise Refused(Reason.NOT_JSON, "value", "nested too deeply", "send a flat JSON object") from None
    except msgspec.DecodeError as error:
        raise _malformed(raw, str(error)) from None


def _malformed(raw: bytes, message: str) -> Refused:
    if any(found["lone"] for found in _ESCAPES.finditer(raw)):
        return Refused(
            Reason.LONE_SURROGATE, "value", "half of a surrogate pair", "send characters whole, as UTF-8"
        )
    return Refused(Reason.NOT_JSON, "value", message, "send one JSON object")


def refusal(error: msgspec.ValidationError) -> Refused:
    """A msgspec message, sorted into a reason, the field it names, and a remedy."""
    message = str(error)
    what, _, at = message.rpartition(" - at `$")
    what, path = (what, at.removesuffix("`").removeprefix(".")) if what else (message, "")
    if missing := _MISSING.match(what):
        field = f"{path}.{missing['field']}" if path else missing["field"]
        return Refused(Reason.MISSING_FIELD, field, "missing", f"add {missing['field']}")
    found = _EXPECTED.match(what)
    if not path:
        got = found["got"] if found else what
        return Refused(Reason.NOT_AN_OBJECT, "value", got, "send one JSON object")
    if found:
        return Refused(Reason.WRONG_TYPE, path, found["got"], f"send {_kinds(found['expected'])}")
    return _invalid(path, what)


def _kinds(expected: str) -> str:
    """msgspec's names of types, as people say them."""
    return " or ".join(_KINDS.get(kind, kind) for kind in expected.split(" | "))


def _invalid(path: str, what: str) -> Refused:
    """A value of the right type that is not allowed."""
    if "timezone" in what:
        return Refused(Reason.NAIVE_TIME, path, "time without zone", RFC_3339)
    if "RFC3339" in what:
        return Refused(Reason.INVALID_VALUE, path, "string that is no RFC 3339 time", RFC_3339)
    if limit := _LIMIT.match(what):
        return _beyond(path, limit)
    if word := _WORD.match(what):
        return _unknown_word(path, word["word"])
    return Refused(Reason.INVALID_VALUE, path, what[:_SHOWN], "send another value")


def _beyond(path: str, limit: re.Match[str]) -> Refused:
    """A number or a length on the wrong side of its limit."""
    least = limit["sign"] == ">="
    border = f"{'at least' if least else 'at most'} {limit['limit']}"
    if not limit["length"]:
        got = f"number {'below' if least else 'above'} {limit['limit']}"
        return Refused(Reason.INVALID_VALUE, path, got, f"send {border}")
    kind, unit = ("string", "characters") if limit["kind"] == "str" else ("array", "items")
    if least:  # the only lower limit of a length is 1
        return Refused(Reason.INVALID_VALUE, path, f"empty {kind}", f"send at least one {unit[:-1]}")
    return Refused(
        Reason.INVALID_VALUE, path, f"{kind} of more than {limit['limit']} {unit}", f"send {border} {unit}"
    )


def _unknown_word(path: str, word: str) -> Refused:
    got = f"string {word[:_SHOWN]!r}"
    words = _WORDS.get(path.rpartition(".")[2])
    if words is None:  # the two decoders saw different ops: only a repeated key does that
        return Refused(Reason.INVALID_VALUE, path, got, f"send {path} once")
    return Refused(Reason.INVALID_VALUE, path, got, f"one of {', '.join(words)}")
