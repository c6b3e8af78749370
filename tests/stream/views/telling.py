"""Events, states and headers for tests of the views, with content of their own."""

import datetime as dt
from typing import Any

import msgspec

from stream.views.port import Headed, Held, Told
from tracker import keys
from tracker.conversation import Header
from tracker.events import EventType
from tracker.machine import StanceState
from tracker.records import EPOCH
from tracker.stances import Stance

START = dt.datetime(2026, 11, 29, 20, 0, tzinfo=dt.UTC)


def told(sequence: int, kind: EventType = EventType.ESTABLISHED, **rest: Any) -> Told:
    """An event; its id follows from tenant, conversation, sequence and type."""
    given: dict[str, Any] = {
        "tenant": "default",
        "conversation": "room",
        "holder": "ann",
        "target": "t-1",
        "turn": f"m{sequence}",
        "before": "unknown",
        "after": "support",
        "time": START + dt.timedelta(seconds=sequence),
        "flip": kind is EventType.FLIPPED,
    } | rest
    ident = keys.digest(given["tenant"], given["conversation"], str(sequence), kind, length=32)
    body = msgspec.json.encode({"id": ident, "sequence": sequence})
    return Told(**{"id": ident, "type": kind.value, "sequence": sequence, "body": body} | given)


def flip(sequence: int, **rest: Any) -> Told:
    """A flip from support to oppose."""
    moved = {"before": "support", "after": "oppose", "trigger": "factual_logical"}
    return told(sequence, EventType.FLIPPED, **moved | rest)


def retraction(sequence: int, of: Told, **rest: Any) -> Told:
    """What takes an event back."""
    same = {name: getattr(of, name) for name in ("tenant", "conversation", "holder", "target", "flip")}
    return told(sequence, EventType.RETRACTED, retracts=of.id, **same | rest)


def forgotten(sequence: int, **rest: Any) -> Told:
    """That a person is erased."""
    return told(sequence, EventType.FORGOTTEN, turn=None, after="unknown", **rest)


def alert(ident: str, **rest: Any) -> Told:
    """An alert: it has no sequence."""
    given: dict[str, Any] = {"tenant": "default", "conversation": "room", "time": START} | rest
    return Told(id=ident, type="volteface.alert.raised", body=b"{}", **given)


def held(version: int, stance: Stance | None = Stance.SUPPORT, **rest: Any) -> Held:
    """A state; gone without a stance."""
    state = None if stance is None else StanceState(stance, f"m{version}", 0.75, 2)
    given: dict[str, Any] = {"tenant": "default", "conversation": "room", "holder": "ann", "target": "t-1"}
    return Held(state=state, version=version, **given | rest)


def headed(version: int, seconds: float | None = None, **rest: Any) -> Headed:
    """A header; `tenant`, `conversation`, and fields of the header itself."""
    where = {"tenant": rest.pop("tenant", "default"), "conversation": rest.pop("conversation", "room")}
    newest = None if seconds is None else EPOCH + dt.timedelta(seconds=seconds)
    return Headed(header=Header(version=version, newest=newest, **rest), **where)
