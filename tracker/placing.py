"""A turn's place in the window: where it is folded, not where it came."""

import msgspec

from tracker.context import WINDOW_TURNS, Window, WindowTurn, find
from tracker.ledger import Ledger, LedgerEntry


def placed(window: Window, turn: WindowTurn, entry: LedgerEntry, ledger: Ledger) -> Window:
    """The window with a turn at its entry's place; one older than all that a full one holds stays out."""
    places = {one.turn: one.place for one in ledger.values() if one.op == "create"}
    older = [seen for seen in window if seen.turn not in places or places[seen.turn] < entry.place]
    newer = [seen for seen in window if seen not in older]
    return (*older, turn, *newer)[-WINDOW_TURNS:]


def edited(window: Window, turn: str, holder: str, text: str) -> tuple[WindowTurn, Window]:
    """A turn with its new text, and the window with it if it is there; what it says now nobody has read."""
    seen = find(window, turn)
    if seen is None:
        return WindowTurn(turn, holder, text), window
    after = msgspec.structs.replace(seen, text=text, sides={})
    return after, tuple(after if one is seen else one for one in window)


def preceding(window: Window, turn: str) -> Window:
    """What the reader is shown of the window before a turn; nothing where the turn has left it."""
    index = next((at for at, seen in enumerate(window) if seen.turn == turn), 0)
    return window[:index]
