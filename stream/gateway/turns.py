"""From a request's body to records of the key's tenant, or to why each is refused. Pure."""

from collections.abc import Sequence
from uuid import uuid4

import msgspec

from tracker import keys, parsing
from tracker.records import ClearTurns, CreateTurn, DeleteTurn, EditTurn, Reason, Record, Refused

_TURN_OPS = CreateTurn | EditTurn | DeleteTurn | ClearTurns
_ELSEWHERE = (
    "send create, edit, delete or clear; targets, corrections and erasures have addresses of their own"
)
_UNNAMED = "clear"  # the others' ids follow from turn and revision

Fields = dict[str, msgspec.Raw]

_many = msgspec.json.Decoder(list[msgspec.Raw])
_fields = msgspec.json.Decoder(Fields)


class NotJson(ValueError):
    """A body that is no JSON."""


def divided(body: bytes) -> tuple[list[bytes], bool]:
    """The records in a body, still raw, and whether it was a list of them. Raises NotJson."""
    try:
        body.decode()
        if body.lstrip()[:1] == b"[":
            return [bytes(raw) for raw in _many.decode(body)], True
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotJson(str(error)) from None
    return [body], False


def record(raw: bytes, tenant: str, ident: str) -> Record:
    """One record of a tenant; `ident` is its id where it needs one and brings none. Raises Refused."""
    found = parsing.parse(_completed(raw, tenant, ident))
    if not isinstance(found, _TURN_OPS):
        raise Refused(Reason.UNKNOWN_OP, "op", "an operation that is no turn's", _ELSEWHERE)
    return found


def _completed(raw: bytes, tenant: str, ident: str) -> bytes:
    """The record with the tenant, and an id where its op needs one; what is no object stays as it is."""
    try:
        fields = _fields.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return raw
    if "tenant" in fields and _text(fields["tenant"]) != tenant:
        remedy = "leave tenant out: it is the key's"
        raise Refused(Reason.INVALID_VALUE, "tenant", "another tenant than the key's", remedy)
    fields["tenant"] = _encoded(tenant)
    if "id" not in fields and "op" in fields and _text(fields["op"]) == _UNNAMED:
        fields["id"] = _encoded(ident)
    return msgspec.json.encode(fields)


def _encoded(text: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(text))


def _text(raw: msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # parsing says what is wrong with it


def idents(principal: str, purpose: str, key: str | None, count: int = 1) -> Sequence[str]:
    """Ids for records that bring none: the same whenever a principal sends the same Idempotency-Key."""
    if key is None:
        return [str(uuid4()) for _ in range(count)]
    return [keys.digest(principal, purpose, key, str(index), length=32) for index in range(count)]
