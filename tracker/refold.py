"""A refold: a correction or a late turn applied to its conversation, with its ledger. Pure.

It says what must be read (`wanted`), takes the answers, and goes on until its `outcome` is there.
"""

import datetime as dt
import itertools
from collections.abc import Iterator, Sequence

import msgspec

from tracker.context import find
from tracker.conversation import Conversation, Rules
from tracker.corrections import Correction, corrected
from tracker.folding import Answer, Asking, Read, Refolded, Turn, Wanted, noted, refolded
from tracker.ledger import Ledger, LedgerEntry
from tracker.machine import UNKNOWN, StanceState
from tracker.observations import Mark
from tracker.placing import preceding
from tracker.records import CreateTurn, DeclareTarget, Reason, Record, Refused, record_id
from tracker.resettlement import resettled
from tracker.settlement import Outcome
from tracker.stances import Stance
from tracker.standing import Comparison
from tracker.targets import HolderStates, Targets, state_of


class Refold:
    """One record on its way. Its conversation has the states of `holders(ledger, record)`."""

    def __init__(
        self,
        conversation: Conversation,
        ledger: Ledger,
        record: Record,
        receipt: dt.datetime | None,
        rules: Rules,
        source: str = "",
    ) -> None:
        """Raises Refused."""
        self.wanted: tuple[Wanted, ...] = ()
        self.outcome: Outcome | None = None
        correction = corrected(conversation, ledger, record, receipt, rules)
        self._work = _applied(conversation, ledger, correction, rules, source)
        self._go_on(None)

    def take(self, answers: Sequence[Answer]) -> None:
        """Go on with an answer to each of what is wanted; None says that it cannot be read.

        Raises Refused where the record's own turn cannot be read, and WrongObservation.
        """
        for wanted, answer in zip(self.wanted, answers, strict=True):
            if answer is None and isinstance(wanted, Read) and wanted.needed:
                remedy = "see the reader's log; retry once it can take this turn"
                raise Refused(Reason.FAILED, "turn", "a turn that cannot be read", remedy)
        self._go_on(answers)

    def _go_on(self, answers: Sequence[Answer] | None) -> None:
        try:
            self.wanted = next(self._work) if answers is None else self._work.send(answers)
        except StopIteration as done:
            self.wanted, self.outcome = (), done.value


def holders(ledger: Ledger, record: Record) -> frozenset[str]:
    """Whose states applying a record takes, beside those of pins that expire."""
    if isinstance(record, DeclareTarget):
        return frozenset()
    named: str | None = getattr(record, "holder", None)
    if named is not None:
        return frozenset({named})
    turn: str | None = getattr(record, "turn", None)  # none: a clear of all
    turns = (one for one in ledger.values() if one.op == "create" and turn in {None, one.turn})
    return frozenset(one.holder for one in turns if one.holder is not None)


def _applied(
    conversation: Conversation, ledger: Ledger, correction: Correction, rules: Rules, source: str
) -> Asking[Outcome]:
    anew = Refolded()
    if correction.touched is not None:
        start = _start(conversation, ledger, correction.touched)
        anew = yield from refolded(start, _turns(ledger, correction, correction.touched), rules)
    after = _after(conversation, correction, anew)
    difference = Comparison(conversation, after, ledger, correction, rules).difference(anew)
    return resettled(conversation, after, ledger, correction, anew, difference, rules, source)


def _start(conversation: Conversation, ledger: Ledger, holder: str) -> HolderStates:
    """A holder's states before the ledger's first turn: targets declared within it start with it."""
    stored = conversation.holders.get(holder, {})
    declared = _declared(ledger)
    turns = sorted((one for one in ledger.values() if one.holder == holder), key=lambda one: one.place)
    older = (target.id for target in conversation.header.targets if target.id not in declared)
    return {target: _first(stored.get(target), target, turns) for target in older}


def _declared(ledger: Ledger) -> dict[str | None, int]:
    """The targets that were first declared within the ledger, and at which arrival."""
    return {one.target: one.arrival for one in ledger.values() if one.op == "target" and not one.again}


def _first(now: StanceState | None, target: str, turns: Sequence[LedgerEntry]) -> StanceState:
    """The state that the first of the turns was folded from, as far as it is known still."""
    course = [
        stance
        for turn in turns
        for seen, stance in zip(turn.observations, turn.folded_under, strict=True)
        if seen.target == target
    ]
    now = now or UNKNOWN
    if not course or course[0] is Stance.UNKNOWN:
        return UNKNOWN if course else now
    course.append(now.stance)
    moves = sum(one is not other for one, other in itertools.pairwise(course))
    return StanceState(course[0], flips=max(0, now.flips - moves)) if moves else now


def _turns(ledger: Ledger, correction: Correction, holder: str) -> Iterator[Turn]:
    """The holder's turns that survive, in the order of their places."""
    targets = {target.id: target for target in correction.targets}
    declared = _declared(ledger)
    own = () if correction.entry.op != "create" else (correction.entry,)
    entries = [*{**ledger, **correction.changed}.values(), *own]
    turns = [one for one in entries if one.op == "create" and one.holder == holder and not one.gone]
    for entry in sorted(turns, key=lambda one: one.place):
        fresh = correction.fresh if correction.fresh and correction.fresh.turn == entry.turn else None
        read = tuple(targets[one.target] for one in entry.observations)
        yield Turn(
            entry=entry,
            targets=correction.read if entry is correction.entry else read,
            known=tuple(one for one in correction.targets if declared.get(one.id, 0) <= entry.arrival),
            text=fresh or find(correction.window, entry.turn),
            window=preceding(correction.window, entry.turn or ""),
            fresh=fresh is not None,
        )


def _after(conversation: Conversation, correction: Correction, anew: Refolded) -> Conversation:
    header = conversation.header
    newest = header.newest
    if isinstance(correction.record, CreateTurn) and Mark.LATE not in correction.entry.marks:
        newest = correction.entry.sent_at
    header = msgspec.structs.replace(
        header,
        version=correction.arrival,
        newest=newest,
        targets=correction.targets,
        awaited=tuple(one for one in header.awaited if one != record_id(correction.record)),
        pins=correction.pins,
    )
    states = {**conversation.holders, **{holder: {} for holder in correction.emptied}}
    if correction.touched is not None:
        states[correction.touched] = _kept(anew.states, correction.targets)
    window = noted(correction.window, anew.turns)
    return msgspec.structs.replace(conversation, header=header, window=window, holders=states)


def _kept(after: HolderStates, targets: Targets) -> HolderStates:
    """The states worth keeping: unknown is what a state is without, unless it hides an inherited one."""
    kept = dict(after)
    for target, state in after.items():
        less = {name: other for name, other in kept.items() if name != target}
        if state == UNKNOWN and state_of(less, targets, target) == UNKNOWN:
            kept = less
    return kept
