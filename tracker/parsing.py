"""From the raw bytes of a turns topic's record to a Record, or a refusal that says how to mend it."""

import re

import msgspec

from tracker import keys
from tracker.records import (
    ClearTurns,
    CreateTurn,
    DeclareTarget,
    DeleteTurn,
    EditTurn,
    EraseHolder,
    OverrideStance,
    Reason,
    Record,
    Refused,
    check,
)


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

_AT = re.compile(r" - at `\$\.?(?P<path>.*?)`$")
_EXPECTED = re.compile(r"^Expected `(?P<expected>[^`]+)`, got `(?P<got>[^`]+)`")
_MISSING = re.compile(r"^Object missing required field `(?P<field>[^`]+)`")


def parse(raw: bytes | None) -> Record:
    """The record in `raw`. Raises Refused."""
    if raw is None:
        raise Refused(Reason.NULL, "value", "null", "send a record; a turn is taken back by op delete")
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise Refused(
            Reason.NOT_UTF8, "value", f"byte {error.start} is no UTF-8", "encode JSON as UTF-8"
        ) from None
    try:
        op = _OP_DECODER.decode(raw).op
        if op not in _DECODERS:
            raise Refused(Reason.UNKNOWN_OP, "op", f"string {op[:40]!r}", f"one of {', '.join(_DECODERS)}")
        return check(_DECODERS[op].decode(raw))
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from None
    except RecursionError:
        raise Refused(Reason.NOT_JSON, "value", "nested too deeply", "send a flat JSON object") from None
    except msgspec.DecodeError as error:
        raise _malformed(str(error)) from None


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


def _malformed(message: str) -> Refused:
    if "surrogate" in message:
        return Refused(
            Reason.LONE_SURROGATE, "value", "half of a surrogate pair", "send characters whole, as UTF-8"
        )
    return Refused(Reason.NOT_JSON, "value", message, "send one JSON object")


def _refusal(message: str) -> Refused:
    """A msgspec message, sorted into a reason, the field it names, and a remedy."""
    at = _AT.search(message)
    path = at["path"] if at else ""
    what = message[: at.start()] if at else message
    if missing := _MISSING.match(what):
        field = f"{path}.{missing['field']}" if path else missing["field"]
        return Refused(Reason.MISSING_FIELD, field, "missing", f"add {missing['field']}")
    if "timezone" in what:
        return Refused(
            Reason.NAIVE_TIME,
            path,
            "time without zone",
            "write RFC 3339 with Z or an offset: 2026-11-29T20:14:05Z",
        )
    if not path:
        got = found["got"] if (found := _EXPECTED.match(what)) else what
        return Refused(Reason.NOT_AN_OBJECT, "value", got, "send one JSON object")
    if found := _EXPECTED.match(what):
        if "length" not in found["expected"]:
            return Refused(Reason.WRONG_TYPE, path, found["got"], f"send {found['expected']}")
    return Refused(Reason.INVALID_VALUE, path, what, "send a value that DESIGN.md's record table allows")
