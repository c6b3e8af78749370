"""Where in the log the texts stand that a rebuilt conversation needs, and the conversation with them. Pure.

Neither journal nor states have text: that of the window's turns and that of edits that wait for their turn
must be read where the records stand.
"""

from collections.abc import Callable, Mapping

import msgspec

from tracker.context import WINDOW_TURNS, Window, WindowTurn, find, remembered
from tracker.ledger import Ledger, LedgerEntry
from tracker.rebuild import Kept, Rebuilt
from tracker.records import CreateTurn, EditTurn, Record
from tracker.stances import Expressed

Finds = Callable[[int], Record | None]  # the record of an arrival, where it still stands in the log


class Shown(msgspec.Struct, frozen=True):
    """A turn of the window: the arrivals of its create, and of the edit whose text it has."""

    arrival: int
    turn: str
    sides: Mapping[str, Expressed] = {}
    edit: int | None = None
    seen: WindowTurn | None = None  # as the store still shows it


def shown(kept: Kept, then: Rebuilt) -> tuple[Shown, ...]:
    """The last turns that survive, as the ledger tells, in the order of their places."""
    edits = _edits(then.ledger)
    turns = [one for one in then.ledger.values() if one.op == "create" and not one.gone]
    last = sorted(turns, key=lambda one: one.place)[-WINDOW_TURNS:]
    return tuple(_shown(kept, edits, one, one.turn) for one in last if one.turn is not None)


def _edits(ledger: Ledger) -> dict[tuple[str | None, int], int]:
    """The last edit of each turn's revision: the one that was applied last."""
    return {
        (one.turn, one.revision): arrival
        for arrival, one in ledger.items()
        if one.op == "edit" and not one.waits
    }


def _shown(kept: Kept, edits: Mapping[tuple[str | None, int], int], one: LedgerEntry, turn: str) -> Shown:
    before, seen = kept.ledger.get(one.arrival), find(kept.conversation.window, turn)
    same = before is not None and before.revision == one.revision
    return Shown(one.arrival, turn, one.sides, edits.get((turn, one.revision)), seen if same else None)


def waiting(kept: Kept, then: Rebuilt) -> tuple[int, ...]:
    """The arrivals of edits that have come since, and wait for their turn."""
    edits = (one.arrival for one in then.ledger.values() if one.op == "edit" and one.waits)
    return tuple(arrival for arrival in edits if arrival > kept.version)


def needed(kept: Kept, then: Rebuilt) -> frozenset[int]:
    """The arrivals of all records whose text is needed."""
    turns = shown(kept, then)
    edits = {one.edit for one in turns if one.edit is not None}
    return frozenset({one.arrival for one in turns} | edits | {*waiting(kept, then)})


def window(turns: tuple[Shown, ...], record: Finds) -> Window:
    """The window, of the turns whose text is still there."""
    told = ((_text(one, record), one.sides) for one in turns)
    return tuple(msgspec.structs.replace(turn, sides=sides) for turn, sides in told if turn is not None)


def _text(shown: Shown, record: Finds) -> WindowTurn | None:
    create = record(shown.arrival)
    edit = None if shown.edit is None else record(shown.edit)
    if not isinstance(create, CreateTurn) or (shown.edit is not None and not isinstance(edit, EditTurn)):
        return shown.seen  # never what the turn said before it was edited
    text = edit.text if isinstance(edit, EditTurn) else create.text
    return msgspec.structs.replace(remembered(create), text=text)


def ledger(kept: Kept, then: Rebuilt, record: Finds) -> Ledger:
    """The ledger, with the text of the edits that wait, as far as it is still there."""
    found = {arrival: record(arrival) for arrival in waiting(kept, then)}
    texts = {arrival: edit.text for arrival, edit in found.items() if isinstance(edit, EditTurn)}
    return {
        arrival: msgspec.structs.replace(entry, text=texts[arrival]) if arrival in texts else entry
        for arrival, entry in then.ledger.items()
    }
