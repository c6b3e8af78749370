"""What the views take from the topics: a message's bytes to an entry of a batch, or Unreadable.

Only what views look into is decoded; an event's bytes are kept as they are.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Annotated
from urllib.parse import unquote_to_bytes

import msgspec

from stream.entries import MOST_VERSION, Unreadable
from stream.topics import Name
from stream.views.port import Entry, Headed, Held, Told
from tracker.ledger import HeaderRow, StateRow
from tracker.records import MAX_NAME_BYTES

# In the order of a rebuild: who is forgotten in stances takes alerts along that came before.
FED: tuple[Name, ...] = ("alerts", "stances", "states")

Time = Annotated[dt.datetime, msgspec.Meta(tz=True)]


class _Target(msgspec.Struct):
    id: str


class _Trigger(msgspec.Struct):
    kind: str


class _Position(msgspec.Struct, rename={"before": "from", "after": "to"}):
    tenant: str
    run: str
    conversation: str
    holder: str
    target: _Target
    before: str
    after: str
    turn: str | None = None
    trigger: _Trigger | None = None
    retracts: str | None = None


class _Event(msgspec.Struct):
    id: str
    type: str
    sequence: Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,20}\Z")]
    time: Time
    data: _Position
    previous: str | None = None


class _Raised(msgspec.Struct):
    tenant: str
    run: str
    conversation: str


class _Alert(msgspec.Struct):
    id: str
    type: str
    time: Time
    data: _Raised


_event = msgspec.json.Decoder(_Event)
_alert = msgspec.json.Decoder(_Alert)
_state = msgspec.json.Decoder(StateRow)
_header = msgspec.json.Decoder(HeaderRow)


def entry_of(name: Name, run: str, key: bytes | None, value: bytes | None) -> Entry:
    """The entry that a message of one of the topics FED is. Raises Unreadable."""
    try:
        entry = _READ[name](run, key or b"", value)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Unreadable(type(error).__name__) from error  # its words may quote a name
    for field in ("tenant", "id", "conversation", "type", "holder", "target", "turn", "trigger", "retracts"):
        if len((getattr(entry, field, None) or "").encode()) > MAX_NAME_BYTES:
            raise Unreadable(f"{field}: longer than {MAX_NAME_BYTES} bytes")
    return entry


def _told(run: str, key: bytes, value: bytes | None) -> Told:
    event = _event.decode(value or b"")
    data, sequence = event.data, int(event.sequence)
    _require_run(data.run, run)
    if sequence > MOST_VERSION:
        raise Unreadable("sequence: a number that no conversation reaches")
    return Told(
        tenant=data.tenant,
        id=event.id,
        conversation=data.conversation,
        type=event.type,
        time=event.time,
        body=value or b"",
        sequence=sequence,
        holder=data.holder,
        target=data.target.id,
        turn=data.turn,
        trigger=data.trigger.kind if data.trigger else None,
        before=data.before,
        after=data.after,
        flip=event.previous is not None,  # what goes to the flips topic has it
        retracts=data.retracts,
    )


def _alerted(run: str, key: bytes, value: bytes | None) -> Told:
    alert = _alert.decode(value or b"")
    _require_run(alert.data.run, run)
    return Told(
        tenant=alert.data.tenant,
        id=alert.id,
        conversation=alert.data.conversation,
        type=alert.type,
        time=alert.time,
        body=value or b"",
    )


def _kept(run: str, key: bytes, value: bytes | None) -> Held | Headed:
    """A state or a header: the key tells which, and whose state is gone."""
    parts = tuple(unquote_to_bytes(part).decode() for part in key.split(b"/"))
    if len(parts) == 2:
        return _headed(run, value)
    if len(parts) != 4:
        raise Unreadable("key: neither a conversation's nor a state's")
    tenant, conversation, holder, target = parts
    if value is None:
        return Held(tenant=tenant, conversation=conversation, holder=holder, target=target, state=None)
    row = _state.decode(value)
    _require_run(row.run, run)
    if (
        row.tenant,
        row.conversation,
        row.holder,
        row.target,
    ) != parts or not 0 <= row.version <= MOST_VERSION:
        raise Unreadable("key: another state's")
    return Held(
        tenant=tenant,
        conversation=conversation,
        holder=holder,
        target=target,
        state=row.state,
        version=row.version,
    )


def _headed(run: str, value: bytes | None) -> Headed:
    row = _header.decode(value or b"")
    _require_run(row.run, run)
    if not 0 <= row.header.version <= MOST_VERSION:
        raise Unreadable("version: a number that no conversation reaches")
    return Headed(tenant=row.tenant, conversation=row.conversation, header=row.header)


def _require_run(found: str, wanted: str) -> None:
    if found != wanted:
        raise Unreadable("run: another run's")


_READ: Mapping[Name, Callable[[str, bytes, bytes | None], Entry]] = {
    "stances": _told,
    "alerts": _alerted,
    "states": _kept,
}
