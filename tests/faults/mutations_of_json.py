"""What can be wrong with a record's JSON: its fields, its numbers, its strings, its depth."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.faults.mutations import GOOD, LIMIT_BYTES, Must, Mutation, Sent
from tracker.records import MAX_NAME_BYTES, MAX_TEXT_BYTES, Reason

Fields = dict[str, Any]
# Of DESIGN.md's table, beside conversation and sent_at.
REQUIRED: dict[str, tuple[str, ...]] = {
    "create": ("turn", "holder", "text"),
    "edit": ("turn", "text"),
    "delete": ("turn",),
    "clear": ("id",),
    "target": ("id", "proposition"),
    "override": ("id", "by", "reason", "to"),
    "erase": ("id", "holder"),
}
OPTIONAL = ("op", "id", "tenant", "revision", "reply_to", "holder_kind", "media", "language", "status", "to")
ODD_TEXTS = (
    "\u202eright to left\u202c", "zero\u200b\u200c\u200d\ufeffwidth", "\x00\x01\x7f\x85\u2028\u2029",
    "\uffff\ufffe", "e" + "\u0301" * 200, "👩\u200d👩\u200d👧\u200d👦" * 20, "ﷺ" * 50, "\U0010ffff",
    "\\u0000 \\ud800 %00 {{x}} ${x}", "\r\n\r\n",
)  # fmt: skip
NO_STRINGS: tuple[Any, ...] = (7, -1, 0, 1.5, 1e308, 10**30, True, [], {}, ["x"], {"a": {"b": [None]}}, None)
JUNK: tuple[Any, ...] = (*NO_STRINGS, "", "x", "7")

Change = Callable[[random.Random, Fields], Must]  # in place; what the parser must then say


def fields_of(sent: Sent) -> Fields | None:
    """A record's JSON; None where an earlier mutation left none."""
    try:
        fields = json.loads(sent.value or b"")
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def dumped(chance: random.Random, fields: Any) -> bytes:
    """JSON with or without escapes."""
    return json.dumps(fields, ensure_ascii=chance.random() < 0.5).encode(errors="surrogatepass")


def op_of(fields: Fields) -> str:
    """The op that the fields stand for."""
    return str(fields.get("op", "create"))


def required(fields: Fields, *but: str) -> list[str]:
    """The fields that must be there, and are."""
    names = ("conversation", "sent_at", *REQUIRED.get(op_of(fields), ()))
    return [name for name in names if name not in but and name in fields]


def must_be(*reasons: Reason) -> Must:
    """The parser refuses for one of these."""
    return frozenset(reasons)


def of_fields(change: Change) -> Mutation:
    """The mutation that makes a change to a record's fields; what is no object any more it leaves alone."""

    def mutation(chance: random.Random, sent: Sent, other: Sent) -> Sent:
        fields = fields_of(sent)
        if fields is None or not required(fields, "to", "text", "reason", "sent_at", "conversation"):
            return sent
        must = change(chance, fields)
        return replace(sent, value=dumped(chance, fields), must=must)

    mutation.__name__ = change.__name__
    return mutation


def field_dropped(chance: random.Random, fields: Fields) -> Must:
    del fields[chance.choice(required(fields))]
    return must_be(Reason.MISSING_FIELD)


def field_added(chance: random.Random, fields: Fields) -> Must:
    fields[chance.choice(["platform", "Text", "", "text ", "é", "x" * 5000])] = chance.choice(JUNK)
    return GOOD


def type_swapped(chance: random.Random, fields: Fields) -> Must:
    fields[chance.choice(required(fields, "to"))] = chance.choice(NO_STRINGS)
    return must_be(Reason.WRONG_TYPE)


def junk(chance: random.Random, fields: Fields) -> Must:
    fields[chance.choice([*fields, *OPTIONAL])] = chance.choice(JUNK)
    return None


def not_a_number(chance: random.Random, fields: Fields) -> Must:
    number = chance.choice([float("nan"), float("inf"), -float("inf")])
    fields[chance.choice([*fields, "revision", "other"])] = chance.choice([number, [number], {"x": number}])
    return must_be(Reason.NOT_JSON, Reason.WRONG_TYPE, Reason.INVALID_VALUE)


def name_emptied(chance: random.Random, fields: Fields) -> Must:
    fields[chance.choice(required(fields, "text", "reason"))] = ""
    return must_be(Reason.INVALID_VALUE)


def name_too_long(chance: random.Random, fields: Fields) -> Must:
    name = chance.choice(required(fields, "text", "reason", "sent_at", "to", "proposition"))
    fields[name] = chance.choice(["x" * (MAX_NAME_BYTES + 1), "é" * 300, "🦀" * 5000])
    return must_be(Reason.TOO_LONG)


def lone_surrogate(chance: random.Random, fields: Fields) -> Must:
    name = chance.choice(required(fields, "sent_at", "to"))
    fields[name] = chance.choice(["\ud800{}", "{}\udfff", "{}\udc00\ud800"]).format(fields[name])
    return must_be(Reason.LONE_SURROGATE, Reason.NOT_UTF8)  # the latter where it is not escaped


def odd_text(chance: random.Random, fields: Fields) -> Must:
    name = chance.choice(required(fields, "conversation", "sent_at", "to"))
    limit = MAX_TEXT_BYTES if name == "text" else MAX_NAME_BYTES
    odd = f"{fields[name]}{chance.choice(ODD_TEXTS)}"
    fields[name] = odd if len(odd.encode(errors="surrogatepass")) <= limit else "\u200b\u202e"
    return GOOD


def op_unknown(chance: random.Random, fields: Fields) -> Must:
    fields["op"] = chance.choice(["explode", "CREATE", " create", "", "create\x00", "🦀", "x" * 10_000])
    return must_be(Reason.UNKNOWN_OP)


def op_of_another(chance: random.Random, fields: Fields) -> Must:
    fields["op"] = chance.choice(list(REQUIRED))
    return None


def _first(chance: random.Random, sent: Sent, name: bytes, value: bytes) -> Sent:
    """The record with a field more at its beginning, which is not looked at."""
    rest = sent.value or b""
    return sent.unsure(b'{"' + name + b'": ' + value + b", " + rest[1:]) if rest.startswith(b"{") else sent


def key_twice(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    name = chance.choice([b"op", b"text", b"turn", b"sent_at", b"o\\u0070", b"conversation"])
    return _first(chance, sent, name, chance.choice([b'"erase"', b"7", b"null", b'"edit"', b"[]"]))


def deep(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    depth = chance.choice([5, 100, 500, 5000, 100_000])
    opened, closed = chance.choice([(b"[", b"]"), (b'{"a":', b"}")])
    nested = opened * depth + b"0" + closed * chance.choice([0, depth])
    return _first(chance, sent, chance.choice([b"x", b"text", b"media"]), nested)


def odd_number(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    numbers = (b"1e400", b"-0", b"1" * 5000, b"01", b"0x10", b"1_000", b"1e-999999", b"9007199254740993")
    return _first(chance, sent, chance.choice([b"x", b"revision"]), chance.choice(numbers))


def not_an_object(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    quoted = json.dumps(str(sent.value)).encode()
    made = chance.choice([b"[%b]" % (sent.value or b""), quoted, b"null", b"7", b"true", b'""'])
    return sent.valued(made, Reason.NOT_AN_OBJECT, Reason.NOT_JSON, Reason.NOT_UTF8)


def large_field(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    """As large as a topic takes, in a field that we know or in one that we do not."""
    fields = fields_of(sent)
    if fields is None or sent.must != GOOD:
        return sent
    name = chance.choice(["platform", "text"])
    fields[name] = "x" * max(0, LIMIT_BYTES - 2 * len(sent.value or b"") - 100)
    known = name == "text" and op_of(fields) in ("create", "edit")
    return replace(sent, value=dumped(chance, fields), must=must_be(Reason.TOO_LONG) if known else GOOD)


COMMON: tuple[Mutation, ...] = (
    *map(of_fields, (
        field_dropped, field_added, type_swapped, junk, not_a_number, name_emptied, name_too_long,
        lone_surrogate, odd_text, op_unknown, op_of_another,
    )),
    key_twice, deep, odd_number, not_an_object,
)  # fmt: skip
LARGE: tuple[Mutation, ...] = (large_field,)
