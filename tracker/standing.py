"""Which events hold after a correction, which are retracted, and which are emitted anew. Pure."""

import datetime as dt
from collections.abc import Iterator, Sequence

import msgspec

from tracker import pins as pinning
from tracker import positions
from tracker.conversation import Conversation, Folded, Rules, state_before
from tracker.corrections import Correction
from tracker.events import OF_TRANSITION, EventType, Position
from tracker.folding import Refolded, said
from tracker.ledger import Ledger, LedgerEntry, Standing
from tracker.machine import StanceState
from tracker.records import OverrideStance
from tracker.stances import Stance, TransitionKind, transition
from tracker.targets import state_of


class Telling(msgspec.Struct, frozen=True):
    """An event to be emitted, and the arrival of the entry in which it stands (None: it stands for ever)."""

    kind: EventType
    position: Position
    time: dt.datetime
    arrival: int | None = None


class Difference(msgspec.Struct):
    """What no longer holds, in the entry as it was; and what does now."""

    retracted: list[tuple[LedgerEntry, Standing]] = []
    standing: dict[int, tuple[Standing, ...]] = {}
    told: list[Telling] = []


class Comparison:
    """What is to be told of a correction: from the ledger before it and the turns folded after it."""

    def __init__(
        self, before: Conversation, after: Conversation, ledger: Ledger, correction: Correction, rules: Rules
    ) -> None:
        """`after` has the states, targets and pins that the correction leaves."""
        self._before, self._after, self._ledger = before, after, ledger
        self._correction, self._rules = correction, rules
        self._targets = {target.id: target for target in after.header.targets}
        self._found = Difference()

    def difference(self, anew: Refolded) -> Difference:
        """What is retracted, kept and told."""
        refolded = {one.entry.arrival for one in anew.turns}
        for arrival, entry in self._correction.changed.items():
            if arrival not in refolded and entry.op == "create":
                old = self._ledger[arrival]
                self._turn(old, entry, tuple(self._as_told(old, entry)))
        self._restored(anew)
        for one in anew.turns:
            self._turn(self._ledger.get(one.entry.arrival, one.entry), one.entry, one.folds)
        self._overridden()
        self._forgotten()
        return self._found

    def _turn(self, old: LedgerEntry, new: LedgerEntry, folds: Sequence[Folded]) -> None:
        moved = {
            fold.target.id: fold for fold in folds if fold.transition.kind is not TransitionKind.PERSISTENCE
        }
        kept = tuple(one for one in old.standing if _holds(one, old, new, moved.get(one.target)))
        self._found.retracted += [(old, one) for one in old.standing if one not in kept]
        self._found.standing[new.arrival] = kept
        quiet = {*new.silent, *(one.target for one in kept)}
        for fold in moved.values():
            if fold.target.id not in quiet:
                kind = OF_TRANSITION[fold.transition.kind]
                data = positions.of_entry(self._after, fold, new, self._rules)
                self._found.told.append(Telling(kind, data, new.sent_at, new.arrival))

    def _as_told(self, old: LedgerEntry, new: LedgerEntry) -> Iterator[Folded]:
        """The folds of a turn that is not folded anew, as its events told them."""
        for one in old.standing:
            seen = next((each for each in new.observations if each.target == one.target), None)
            if seen is not None:
                yield Folded(
                    self._targets[one.target],
                    StanceState(one.before),
                    StanceState(one.after),
                    transition(one.before, one.after),
                    seen if new.word is None else said(seen, new.word),
                    new.explanation(one.target) if one.explained else None,
                )

    def _restored(self, anew: Refolded) -> None:
        """From each pin that ends to the fold beneath; and where that has changed since, again."""
        record = self._correction.record
        for pin in self._correction.unpinned:
            beneath = self._beneath(pin.holder, pin.target, self._correction.arrival, anew)
            data = self._state(pin.holder, pin.target, pin.to, beneath)
            if isinstance(record, OverrideStance) and (record.holder, record.target) == (
                pin.holder,
                pin.target,
            ):
                data = msgspec.structs.replace(data, by=record.by, reason=record.reason)
            self._tell(EventType.RESTORED, data, pin.arrival)
        for old in self._ledger.values():
            if old.op == "override" and old.standing:
                self._pin_events(old, anew)

    def _tell(self, kind: EventType, data: Position, arrival: int | None) -> None:
        # One whose entry is beyond the ledger's reach is retracted no more.
        kept = arrival if arrival in {*self._ledger, self._correction.arrival} else None
        self._found.told.append(Telling(kind, data, self._correction.entry.sent_at, kept))

    def _pin_events(self, old: LedgerEntry, anew: Refolded) -> None:
        correction, holder, target = self._correction, old.holder, old.target
        if holder is None or target is None:
            return
        if holder == correction.erased:
            self._found.retracted += [(old, one) for one in old.standing]
            self._found.standing[old.arrival] = ()
        elif old.ended is not None and holder in {correction.touched, *correction.emptied}:
            beneath = self._beneath(holder, target, old.ended, anew)
            for one in old.standing:
                if one.kind is EventType.RESTORED and one.after is not beneath:
                    self._found.retracted.append((old, one))
                    self._found.standing[old.arrival] = tuple(each for each in old.standing if each != one)
                    data = self._state(holder, target, one.before, beneath)
                    self._tell(EventType.RESTORED, data, old.arrival)

    def _beneath(self, holder: str, target: str, arrival: int, anew: Refolded) -> Stance:
        """The fold of what had come before an arrival."""
        if holder != self._correction.touched:
            return state_before(self._after, holder, target).stance
        return state_of(anew.before(arrival), self._after.header.targets, target).stance

    def _overridden(self) -> None:
        record, correction = self._correction.record, self._correction
        if not isinstance(record, OverrideStance) or record.holder is None or record.target is None:
            return
        pin = pinning.find(correction.pins, record.holder, record.target)
        if pin is None or pin.arrival != correction.arrival:
            return
        old = pinning.find(self._before.header.pins, record.holder, record.target)
        beneath = state_before(self._after, record.holder, record.target).stance
        data = self._state(record.holder, record.target, old.to if old else beneath, pin.to)
        data = msgspec.structs.replace(
            data, by=record.by, reason=record.reason, expires_at=record.expires_at or msgspec.UNSET
        )
        self._tell(EventType.OVERRIDDEN, data, correction.arrival)

    def _forgotten(self) -> None:
        holder = self._correction.erased
        for target in self._targets if holder is not None else ():
            assert holder is not None
            pin = pinning.find(self._before.header.pins, holder, target)
            stance = pin.to if pin else state_before(self._before, holder, target).stance
            if stance is not Stance.UNKNOWN:
                data = self._state(holder, target, stance, Stance.UNKNOWN)
                self._tell(EventType.FORGOTTEN, data, None)

    def _state(self, holder: str, target: str, before: Stance, after: Stance) -> Position:
        known = self._targets[target]
        return positions.of_state(self._after, holder, known, before, after, self._rules.policy)


def _holds(standing: Standing, old: LedgerEntry, new: LedgerEntry, fold: Folded | None) -> bool:
    if fold is None or old.revision != new.revision:
        return False
    moved = fold.transition
    if (OF_TRANSITION[moved.kind], moved.before, moved.after) != (
        standing.kind, standing.before, standing.after,
    ):  # fmt: skip
        return False
    if standing.explained:
        return new.explanation(standing.target) == old.explanation(standing.target)
    return fold.explanation is None
