"""Rows of the views' tables, from what is put there and to what is given back."""

from typing import Any

import msgspec
from sqlalchemy import Row

from stream.database.moments import moment, number
from stream.views.port import Activity, ConversationRow, Headed, Held, HolderKey, HolderRow, Point, Told
from tracker.conversation import Header
from tracker.pins import Pins, find
from tracker.stances import Stance

_header = msgspec.json.Decoder(Header)


def of_event(told: Told, position: int) -> dict[str, Any]:
    """An event's row."""
    plain = ("tenant", "id", "conversation", "type", "body", "sequence", "holder", "target", "turn")
    rest = ("trigger", "before", "after", "flip")
    row = {name: getattr(told, name) for name in (*plain, *rest)}
    return row | {"position": position, "time": number(told.time), "retracted_by": None}


def of_state(held: Held) -> dict[str, Any]:
    """A state's row; of one that is gone, only its key."""
    key = {name: getattr(held, name) for name in ("tenant", "conversation", "holder", "target")}
    if held.state is None:
        return key
    state = {name: getattr(held.state, name) for name in ("turn", "confidence", "flips")}
    return key | state | {"stance": held.state.stance.value, "version": held.version}


def of_header(headed: Headed) -> dict[str, Any]:
    """A conversation's row as far as its header tells."""
    newest = headed.header.newest
    return {
        "tenant": headed.tenant,
        "conversation": headed.conversation,
        "version": headed.header.version,
        "header": msgspec.json.encode(headed.header),
        "active_at": 0 if newest is None else number(newest),
    }


def header(stored: bytes | None) -> Header:
    """A conversation's header; an empty one where none came yet."""
    return Header() if stored is None else _header.decode(stored)


def conversation(row: Row[Any]) -> ConversationRow:
    """A conversation from its row."""
    return ConversationRow(Activity(moment(row.active_at), row.conversation), row.events, row.flips)


def holder(row: Row[Any], pins: Pins) -> HolderRow:
    """A holder's stance from its row, and what is pinned over it."""
    key: HolderKey = (row.conversation, row.holder, row.target)
    pin = find(pins, row.holder, row.target)
    stance = Stance(row.stance)
    return HolderRow(*key, stance, row.turn, row.confidence, row.flips, pin.to if pin else None)


def point(row: Row[Any]) -> Point:
    """A step of a trajectory from its event's row."""
    return Point(
        row.sequence,
        row.position,
        moment(row.time),
        row.turn,
        row.type,
        Stance(row.before or Stance.UNKNOWN),
        Stance(row.after or Stance.UNKNOWN),
        row.id,
        row.retracted_by,
    )
