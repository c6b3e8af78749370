"""Corrections that came before their turn: it comes out as they leave it."""

from collections.abc import Sequence

import msgspec

from tracker.context import WindowTurn
from tracker.ledger import LedgerEntry


def met(entry: LedgerEntry, turn: WindowTurn, early: Sequence[LedgerEntry]) -> tuple[LedgerEntry, WindowTurn]:
    """A turn's entry and text after the corrections that waited for it, whatever the order they came in."""
    if any(one.op == "delete" for one in early):
        return msgspec.structs.replace(entry, gone=True), turn
    for one in sorted(early, key=lambda one: (one.revision, one.arrival)):
        if one.op == "edit" and one.text is not None and one.revision >= entry.revision:
            entry = msgspec.structs.replace(entry, revision=one.revision)
            turn = msgspec.structs.replace(turn, text=one.text)
    words = [one.word for one in sorted(early, key=lambda one: one.arrival) if one.op == "override"]
    return (msgspec.structs.replace(entry, word=words[-1]) if words else entry), turn
