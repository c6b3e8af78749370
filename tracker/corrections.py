"""Corrections: what a record does to ledger, window and pins before anything is folded anew. Pure.

A correction is applied to the create it is about: it takes the turn back, or changes its text or its word.
One for a turn that has not come waits in the ledger for its create.
"""

import datetime as dt
from collections.abc import Iterator

import msgspec

from tracker import pins as pinning
from tracker import targets as targeting
from tracker.clock import counted
from tracker.context import Window, WindowTurn, find
from tracker.conversation import Conversation, Header, Rules, admitted
from tracker.cutting import cuts
from tracker.ledger import Ledger, LedgerEntry, Word, entry_of
from tracker.observations import Mark
from tracker.pins import MAX_PINS, Pin, Pins
from tracker.placing import edited, placed
from tracker.records import (
    ClearTurns,
    CreateTurn,
    DeclareTarget,
    DeleteTurn,
    EditTurn,
    EraseHolder,
    OverrideStance,
    Reason,
    Record,
    Refused,
    revision_of,
)
from tracker.targets import Targets
from tracker.waiting import met


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """What a record leaves to be folded and told."""

    record: Record
    entry: LedgerEntry  # the record's own
    changed: Ledger = {}  # other entries, as they are after it
    window: Window
    targets: Targets
    pins: Pins
    touched: str | None = None  # the holder whose turns are folded anew
    emptied: frozenset[str] = frozenset()  # holders of whose turns none is left
    fresh: WindowTurn | None = None  # a turn of the touched holder that is read whatever stands
    read: Targets = ()  # what a fresh turn that came with this record is read for
    unpinned: Pins = ()
    erased: str | None = None

    @property
    def arrival(self) -> int:
        """The record's place in the conversation."""
        return self.entry.arrival


def needs_ledger(header: Header, record: Record, receipt: dt.datetime | None, rules: Rules) -> bool:
    """Whether applying the record takes the ledger: a correction, a late turn, or a pin that expires.

    Raises Refused.
    """
    if not isinstance(record, CreateTurn | DeclareTarget):
        return True
    sent_at, _ = counted(record.sent_at, receipt, rules.clock)
    late = isinstance(record, CreateTurn) and header.newest is not None and sent_at < header.newest
    return late or bool(pinning.expired(header.pins, sent_at))


def corrected(
    conversation: Conversation, ledger: Ledger, record: Record, receipt: dt.datetime | None, rules: Rules
) -> Correction:
    """What the record does. Raises Refused."""
    header = conversation.header
    sent_at, marks = counted(record.sent_at, receipt, rules.clock)
    expired = pinning.expired(header.pins, sent_at)
    before = Correction(
        record=record,
        entry=entry_of(record, header.version + 1, sent_at, marks, header.targets),
        window=conversation.window,
        targets=header.targets,
        pins=pinning.without(header.pins, *expired),
        unpinned=expired,
    )
    if isinstance(record, CreateTurn | DeclareTarget):
        return _taken(before, conversation, ledger, record, receipt, rules)
    return _corrected(before, ledger, record)


def _corrected(before: Correction, ledger: Ledger, record: Record) -> Correction:
    match record:
        case EditTurn():
            return _edited(before, ledger, record)
        case DeleteTurn():
            return _deleted(before, ledger, record)
        case ClearTurns():
            return _cleared(before, ledger, record.holder)
        case EraseHolder():
            return _erased(before, ledger, record.holder)
        case OverrideStance(turn=None):
            return _pinned(before, record)
        case OverrideStance():
            return _worded(before, ledger, record)
    raise AssertionError(record)


def _taken(
    before: Correction,
    conversation: Conversation,
    ledger: Ledger,
    record: CreateTurn | DeclareTarget,
    receipt: dt.datetime | None,
    rules: Rules,
) -> Correction:
    """A late turn, or an ordinary record: it finds the corrections that waited for it."""
    admission = admitted(conversation, record, receipt, rules)
    entry = msgspec.structs.replace(before.entry, marks=admission.marks)
    if isinstance(record, DeclareTarget) or admission.turn is None:
        return _with(before, entry=entry, targets=admission.declared or before.targets)
    _require_reach(ledger, entry)
    early = [one for one in ledger.values() if one.waits and one.turn == record.turn]
    changed = {one.arrival: msgspec.structs.replace(one, waits=False, text=None) for one in early}
    entry, turn = met(entry, admission.turn, early)
    if entry.gone:
        return _with(before, entry=entry, changed=changed)
    silent = set(pinning.pinned(before.pins, record.holder))
    exempt = rules.policy.exempts(record.holder, record.holder_kind)
    read = () if exempt else targeting.active(before.targets)
    return _with(
        before,
        entry=msgspec.structs.replace(entry, silent=tuple(one.id for one in read if one.id in silent)),
        changed=changed,
        window=placed(before.window, turn, entry, ledger),
        touched=record.holder,
        fresh=turn,
        read=read,
    )


def _require_reach(ledger: Ledger, entry: LedgerEntry) -> None:
    """A late turn has a place only among what the ledger still holds."""
    whole = len(ledger) == entry.arrival - 1
    if Mark.LATE in entry.marks and not whole and all(entry.sent_at < one.sent_at for one in ledger.values()):
        got, remedy = "time older than all that the ledger still holds", "use replay for history"
        raise Refused(Reason.TOO_LATE, "sent_at", got, remedy)


def _edited(before: Correction, ledger: Ledger, record: EditTurn) -> Correction:
    known, seen = _created(ledger, record.turn), find(before.window, record.turn)
    if known is None and seen is not None:  # beyond the ledger's reach, but still shown
        return _with(before, window=edited(before.window, record.turn, seen.holder, record.text)[1])
    if known is None:
        return _with(before, entry=msgspec.structs.replace(before.entry, waits=True, text=record.text))
    if known.gone or known.holder is None or revision_of(record) < known.revision:
        return before
    turn, window = edited(before.window, record.turn, known.holder, record.text)
    changed = {known.arrival: msgspec.structs.replace(known, revision=revision_of(record))}
    return _with(before, changed=changed, window=window, touched=known.holder, fresh=turn)


def _deleted(before: Correction, ledger: Ledger, record: DeleteTurn) -> Correction:
    known = _created(ledger, record.turn)
    window = tuple(seen for seen in before.window if seen.turn != record.turn)
    if known is None:
        return _with(before, entry=msgspec.structs.replace(before.entry, waits=True), window=window)
    if known.gone:
        return before
    return _with(_without(before, ledger, [known]), window=window, touched=known.holder)


def _cleared(before: Correction, ledger: Ledger, holder: str | None) -> Correction:
    turns = [one for one in _turns(ledger) if holder in {None, one.holder}]
    emptied = frozenset(one.holder for one in turns if one.holder is not None)
    emptied |= set() if holder is None else {holder}
    window = tuple(seen for seen in before.window if holder not in {None, seen.holder})
    return _with(_without(before, ledger, turns), window=window, emptied=emptied)


def _erased(before: Correction, ledger: Ledger, holder: str) -> Correction:
    """As a clear; and no entry names the person any more."""
    after = _with(_cleared(before, ledger, holder), erased=holder)
    named = (after.changed.get(one.arrival, one) for one in ledger.values() if one.holder == holder)
    nameless = {one.arrival: msgspec.structs.replace(one, holder=None) for one in named}
    pins = tuple(pin for pin in after.pins if pin.holder != holder)
    unpinned = tuple(pin for pin in after.unpinned if pin.holder != holder)
    changed = {**after.changed, **nameless}
    changed |= cuts({**ledger, **changed}, [], holder)
    return _with(after, changed=changed, pins=pins, unpinned=unpinned)


def _without(before: Correction, ledger: Ledger, turns: list[LedgerEntry]) -> Correction:
    """Turns taken back, also from what other turns' events tell."""
    left = {"observations": (), "under": (), "explanations": (), "standing": (), "silent": (), "word": None}
    gone = {one.arrival: msgspec.structs.replace(one, gone=True, **left) for one in turns}
    return _with(before, changed={**gone, **cuts({**ledger, **gone}, turns)})


def _worded(before: Correction, ledger: Ledger, record: OverrideStance) -> Correction:
    """A person's word on one turn; `to: null` lifts it."""
    word = None if record.to is None else Word(record.by, record.reason, record.to)
    known = _created(ledger, record.turn)
    if known is None:
        return _with(before, entry=msgspec.structs.replace(before.entry, waits=True, word=word))
    if known.gone or known.word == word:
        return before
    changed = {known.arrival: msgspec.structs.replace(known, word=word)}
    return _with(before, changed=changed, touched=known.holder)


def _pinned(before: Correction, record: OverrideStance) -> Correction:
    """A person's word on a state; `to: null` lifts it."""
    assert record.holder is not None
    assert record.target is not None
    if record.target not in {target.id for target in before.targets}:
        raise Refused(Reason.UNKNOWN_TARGET, "target", "a target never declared here", "declare it first")
    old = pinning.find(before.pins, record.holder, record.target)
    if record.to is None:
        ended = (*before.unpinned, *((old,) if old else ()))
        return _with(before, pins=pinning.without(before.pins, old), unpinned=ended)
    pin = Pin(record.holder, record.target, record.to, before.arrival, record.expires_at)
    after = pinning.placed(before.pins, pin)
    if len(after) > MAX_PINS:
        remedy = "lift one, or give them an expires_at"
        raise Refused(Reason.TOO_MANY_PINS, "target", f"more than {MAX_PINS} pinned states", remedy)
    # One that expires at this very record is replaced by it, and restores nothing.
    same = (pin.holder, pin.target)
    ended = tuple(one for one in before.unpinned if (one.holder, one.target) != same)
    return _with(before, pins=after, unpinned=ended)


def _created(ledger: Ledger, turn: str | None) -> LedgerEntry | None:
    return next((one for one in ledger.values() if one.op == "create" and one.turn == turn), None)


def _turns(ledger: Ledger) -> Iterator[LedgerEntry]:
    return (one for one in ledger.values() if one.op == "create" and not one.gone)


def _with(correction: Correction, **changes: object) -> Correction:
    return msgspec.structs.replace(correction, **changes)
