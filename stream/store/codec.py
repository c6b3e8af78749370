"""How a conversation stands in Redis: bytes from values and values from bytes.

Equal values give equal bytes, so that the final states of two runs can be compared byte for byte, and so
that a commit which comes again is told from another one.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Protocol, TypeVar

import msgspec

from stream.store.port import Commit, ConversationKey, Message, Outbox
from tracker.context import Window
from tracker.conversation import Header
from tracker.ledger import HeaderRow, Ledger, LedgerEntry
from tracker.machine import StanceState
from tracker.targets import HolderStates

TRIM_LIMIT = 200  # ledger fields that one commit drops at most, so that none takes long
_ARRIVAL_DIGITS = 20
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)

Argument = bytes | str | int
_Value_co = TypeVar("_Value_co", covariant=True)


class Misread(ValueError):
    """What was read is not what was asked for: another conversation's, or nothing of ours."""


class _Decoder(Protocol[_Value_co]):
    def decode(self, raw: bytes, /) -> _Value_co: ...


_json = msgspec.json.Encoder(order="deterministic")
_packed = msgspec.msgpack.Encoder(order="deterministic")
_header = msgspec.json.Decoder(HeaderRow)
_window = msgspec.json.Decoder(Window)
_states = msgspec.json.Decoder(dict[str, StanceState])
_entry = msgspec.json.Decoder(LedgerEntry)
_messages = msgspec.msgpack.Decoder(tuple[Message, ...])


def record_field(record: str) -> str:
    """The ledger field of an applied record; its value is the entry."""
    return f"r/{record}"


def turn_field(turn: str) -> str:
    """The ledger field of a turn that a create was applied for; its value is the create's record id."""
    return f"t/{turn}"


def waiting_field(turn: str) -> str:
    """The ledger field of a turn that a correction waits for; its value is the correction's record id."""
    return f"w/{turn}"


def milliseconds(time: dt.datetime) -> int:
    """Whole milliseconds since 1970, by which the ledger is trimmed."""
    return (time - _EPOCH) // _MILLISECOND


def outbox_field(arrival: int) -> str:
    """The outbox field of an arrival: in the order of bytes they stand in the order of arrival."""
    return f"{arrival:0{_ARRIVAL_DIGITS}d}"


def commit_arguments(commit: Commit, run: str) -> list[Argument]:
    """What commit.lua takes: six values, then seven groups of pairs, each after its number of pairs."""
    owner = commit.key
    header = HeaderRow(tenant=owner.tenant, run=run, conversation=owner.name, header=commit.header)
    trim = "" if commit.trim_before is None else milliseconds(commit.trim_before)
    records = [(record_field(entry.id), entry) for entry in commit.entries]
    turns = [(field, entry) for entry in commit.entries for field in turn_fields(entry)]
    return [
        *(commit.expected, commit.header.version, _json.encode(header), _json.encode(commit.window)),
        *(trim, TRIM_LIMIT),
        *_group((holder, _json.encode(states)) for holder, states in commit.holders.items()),
        *_group((field, _json.encode(entry)) for field, entry in records),
        *_group((field, entry.id) for field, entry in turns),
        *_group((milliseconds(entry.sent_at), field) for field, entry in records + turns),
        *_group((outbox_field(arrival), _packed.encode(sent)) for arrival, sent in commit.outbox.items()),
        *_group((record_field(entry.id), _json.encode(entry)) for entry in commit.changed),
        *_group(gone_fields(commit)),
    ]


def turn_fields(entry: LedgerEntry) -> list[str]:
    """The ledger's field of the turn that an applied record created or waits for, if it did either."""
    if entry.turn is None:
        return []
    if entry.op == "create":
        return [turn_field(entry.turn)]
    return [waiting_field(entry.turn)] if entry.waits else []


def gone_fields(commit: Commit) -> list[tuple[str, str]]:
    """What is no more: holders without states, and in the ledger the corrections' waiting for their turns."""
    states = [("states", holder) for holder in commit.forgotten]
    return [*states, *(("ledger", waiting_field(turn)) for turn in commit.arrived)]


def _group(pairs: Iterable[tuple[Argument, Argument]]) -> list[Argument]:
    flat = list(chain.from_iterable(pairs))
    return [len(flat) // 2, *flat]


def header_of(reply: object, key: ConversationKey, run: str) -> Header:
    """The header from its version and body; a fresh one where nothing is stored. Raises Misread."""
    version, body = _places(reply, ("version", "body"))
    if version is None and body is None:
        return Header()
    row = _decoded(_header, body)
    if (row.tenant, row.run, row.conversation) != (key.tenant, run, key.name):
        raise Misread(f"the header read for {key} belongs to another conversation")
    if version != str(row.header.version).encode():
        raise Misread(f"the header read for {key} is of another version than it says")
    return row.header


def window_of(reply: object) -> Window:
    """The window; empty where nothing is stored. Raises Misread."""
    return () if reply is None else _decoded(_window, reply)


def holders_of(reply: object, holders: Sequence[str]) -> Mapping[str, HolderStates]:
    """The states of those of `holders` that have any, from one value each. Raises Misread."""
    found = zip(holders, _places(reply, holders), strict=True)
    return {holder: _decoded(_states, raw) for holder, raw in found if raw is not None}


def present(reply: object, names: Sequence[str]) -> frozenset[str]:
    """Those of `names` that have a value. Raises Misread."""
    return frozenset(name for name, raw in zip(names, _places(reply, names), strict=True) if raw is not None)


def ledger_of(reply: object) -> Ledger:
    """The entries by arrival, in order. Raises Misread."""
    entries = [_decoded(_entry, raw) for raw in _list(reply)]
    return {entry.arrival: entry for entry in sorted(entries, key=lambda entry: entry.arrival)}


def outbox_of(reply: object) -> Outbox:
    """The messages by arrival, in order, from fields and values in turn. Raises Misread."""
    flat = _list(reply)
    try:
        stored = sorted((int(field or b""), raw) for field, raw in zip(flat[::2], flat[1::2], strict=True))
    except ValueError:
        raise Misread("an outbox whose fields are no arrivals") from None
    return {arrival: _decoded(_messages, raw) for arrival, raw in stored}


def _places(reply: object, names: Sequence[str]) -> list[bytes | None]:
    values = _list(reply)
    if len(values) != len(names):
        raise Misread(f"{len(values)} values instead of {len(names)}")
    return values


def _list(reply: object) -> list[bytes | None]:
    if not isinstance(reply, list):
        raise Misread(f"{type(reply).__name__} instead of a list")
    return reply


def _decoded(decoder: _Decoder[_Value_co], raw: object) -> _Value_co:
    if not isinstance(raw, bytes):
        raise Misread(f"{type(raw).__name__} instead of bytes")
    try:
        return decoder.decode(raw)
    except msgspec.MsgspecError as error:
        raise Misread(str(error)) from error
