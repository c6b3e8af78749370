"""How a conversation stands in Redis: bytes from values and values from bytes.

Equal values give equal bytes, so that the final states of two runs can be compared byte for byte, and so
that a repeated commit can be told from another one.
"""

import datetime as dt
from collections.abc import Iterable, Mapping

import msgspec

from stream.store.port import Commit, ConversationKey, Message, Outbox
from tracker.context import Window
from tracker.conversation import Header
from tracker.ledger import HeaderRow, LedgerEntry
from tracker.machine import StanceState
from tracker.targets import HolderStates

TRIM_LIMIT = 200  # ledger fields a commit drops at most, so that no commit takes long
ARRIVAL_DIGITS = 20
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)

_json = msgspec.json.Encoder(order="deterministic")
_packed = msgspec.msgpack.Encoder(order="deterministic")
_header = msgspec.json.Decoder(HeaderRow)
_window = msgspec.json.Decoder(Window)
_states = msgspec.json.Decoder(dict[str, StanceState])
_messages = msgspec.msgpack.Decoder(tuple[Message, ...])


class Misread(ValueError):
    """What was read is not what was asked for: another conversation's, or nothing of ours."""


def record_field(record: str) -> str:
    """The ledger field of an applied record."""
    return f"r/{record}"


def turn_field(turn: str) -> str:
    """The ledger field of a turn that a create was applied for."""
    return f"t/{turn}"


def fields(entry: LedgerEntry) -> tuple[str, ...]:
    """The ledger fields that an applied record takes."""
    if entry.op == "create" and entry.turn is not None:
        return record_field(entry.id), turn_field(entry.turn)
    return (record_field(entry.id),)


def milliseconds(time: dt.datetime) -> int:
    """Whole milliseconds since 1970, as the ledger is trimmed by."""
    return (time - _EPOCH) // _MILLISECOND


def outbox_field(arrival: int) -> str:
    """The outbox field of an arrival; the order of fields is the order of arrivals."""
    return f"{arrival:0{ARRIVAL_DIGITS}d}"
