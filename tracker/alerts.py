"""Finding alerts: a conversation's events in their order, one after the other, in bounded memory.

Events of a conversation come in the order of their sequence, and may come again: then they change nothing.
So the same log gives the same alerts under the same ids, wherever it is cut or read twice.
"""

import datetime as dt
from collections.abc import Iterator, Sequence

import msgspec

from tracker.alert_events import AlertEvent, Raised, raised, withdrawn
from tracker.alert_rules import Flip, Rule, Subject, counted_turns
from tracker.events import Event, EventType

MOST_FLIPS = 1000  # of a conversation, the newest; more within all rules' reach are not counted
MOST_RAISED = 200
CORRECTED_WITHIN = dt.timedelta(days=7)  # an alert may be withdrawn so long, by the clock of the flips

TURNS = frozenset({EventType.ESTABLISHED, EventType.PERSISTED, EventType.FLIPPED})


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of a conversation."""

    clock: dt.datetime | None = None  # the newest time of a flip
    sequence: int = 0  # of the last flip that a rule took
    flips: tuple[Flip, ...] = ()
    raised: tuple[Raised, ...] = ()


def matters(event: Event, rules: Sequence[Rule]) -> bool:
    """Whether an event can change anything at all: where no rule counts turns, most change nothing."""
    return event.type not in TURNS or event.type is EventType.FLIPPED or counted_turns(rules) > 0


def detect(state: State, event: Event, rules: Sequence[Rule]) -> tuple[State, tuple[AlertEvent, ...]]:
    """The state after a conversation's next event, and the alerts that it raises or withdraws."""
    if event.type in TURNS:
        state = _with_turn(state, event, counted_turns(rules))
    match event.type:
        case EventType.FLIPPED:
            return _flipped(state, event, rules)
        case EventType.RETRACTED:
            return _retracted(state, event)
        case EventType.FORGOTTEN:
            return _forgotten(state, event), ()
        case _:
            return state, ()


def _flipped(state: State, event: Event, rules: Sequence[Rule]) -> tuple[State, tuple[AlertEvent, ...]]:
    taking = [rule for rule in rules if rule.takes(event.data)]
    if not taking or int(event.sequence) <= state.sequence:
        return state, ()
    flip = _flip(event, taking)
    clock = flip.time if state.clock is None else max(state.clock, flip.time)
    earlier = tuple(each for each in state.flips if _kept(each, rules, clock))
    known = tuple(each for each in state.raised if _withdrawable(each, rules, clock))
    alerts: list[AlertEvent] = []
    for rule, subject in _open(taking, flip, event, clock):
        if _silent(known, rule, subject, clock):
            continue
        counted = [each for each in earlier if _counts(each, rule, subject, clock)]
        if made := rule.made(flip, counted):
            alert = raised(rule, subject, made, event)
            alerts.append(alert)
            known = (*known, _noted(alert, rule, subject, flip, clock))
    flips = (*earlier, flip) if _kept(flip, rules, clock) else earlier
    known = _bounded(known, rules, clock)
    return State(clock, flip.sequence, flips[-MOST_FLIPS:], known), tuple(alerts)


def _flip(event: Event, taking: Sequence[Rule]) -> Flip:
    data = event.data
    moved_by = data.trigger.holders if data.trigger else ()
    return Flip(
        id=event.id,
        sequence=int(event.sequence),
        time=event.time,
        turn=data.turn or "",
        holder=data.holder,
        target=data.target.id,
        before=data.before,
        after=data.after,
        sources=tuple(dict.fromkeys(holder for holder in moved_by if holder != data.holder)),
        rules=tuple(rule.name for rule in taking),
    )


def _open(
    taking: Sequence[Rule], flip: Flip, event: Event, clock: dt.datetime
) -> Iterator[tuple[Rule, Subject]]:
    """The rules that a flip may end, each with what it counts for; one that comes too late ends none."""
    for rule in taking:
        if rule.ends(event.data) and (not rule.reach or clock - flip.time <= rule.reach):
            yield from ((rule, subject) for subject in rule.subjects(flip))


def _kept(flip: Flip, rules: Sequence[Rule], clock: dt.datetime) -> bool:
    return any(rule.name in flip.rules and rule.keeps(flip, clock) for rule in rules)


def _counts(flip: Flip, rule: Rule, subject: Subject, clock: dt.datetime) -> bool:
    return rule.name in flip.rules and rule.keeps(flip, clock) and subject in rule.subjects(flip)


def _withdrawable(known: Raised, rules: Sequence[Rule], clock: dt.datetime) -> bool:
    return clock - known.at <= CORRECTED_WITHIN or _silences(known, rules, clock)


def _silences(known: Raised, rules: Sequence[Rule], clock: dt.datetime) -> bool:
    return any(rule.name == known.rule and clock - known.at < rule.silence for rule in rules)


def _silent(known: Sequence[Raised], rule: Rule, subject: Subject, clock: dt.datetime) -> bool:
    return any(each.subject == subject and _silences(each, [rule], clock) for each in known)


def _bounded(known: tuple[Raised, ...], rules: Sequence[Rule], clock: dt.datetime) -> tuple[Raised, ...]:
    """The newest, after all that keep a rule silent."""
    excess = max(0, len(known) - MOST_RAISED)
    first = sorted(known, key=lambda each: _silences(each, rules, clock))[:excess]
    return tuple(each for each in known if each not in first)


def _noted(alert: AlertEvent, rule: Rule, subject: Subject, flip: Flip, clock: dt.datetime) -> Raised:
    return Raised(
        id=alert.id,
        rule=rule.name,
        kind=rule.kind,
        severity=rule.severity,
        subject=subject,
        sequence=flip.sequence,
        at=clock,
        events=alert.data.events or (),
        needs=rule.needs,
    )


def _retracted(state: State, event: Event) -> tuple[State, tuple[AlertEvent, ...]]:
    """Without the flip that no longer holds, and without the alerts that it leaves too few flips."""
    gone, left, alerts = event.data.retracts, list[Raised](), list[AlertEvent]()
    for known in state.raised:
        events = tuple(each for each in known.events if each != gone)
        if len(events) == len(known.events) or len(events) >= known.needs:
            left.append(msgspec.structs.replace(known, events=events))
        else:
            alerts.append(withdrawn(known, event))
    flips = tuple(flip for flip in state.flips if flip.id != gone)
    return msgspec.structs.replace(state, flips=flips, raised=tuple(left)), tuple(alerts)


def _forgotten(state: State, event: Event) -> State:
    """Without all before this event that names the erased holder."""
    holder, sequence = event.data.holder, int(event.sequence)
    flips = (
        flip
        for flip in state.flips
        if flip.sequence > sequence or (holder != flip.holder and holder not in flip.sources)
    )
    known = (each for each in state.raised if each.sequence > sequence or holder not in each.subject)
    return msgspec.structs.replace(state, flips=tuple(flips), raised=tuple(known))


def _with_turn(state: State, event: Event, most: int) -> State:
    """The holder's earlier flips are one turn further back."""
    if not most:
        return state
    flips = tuple(_passed(flip, event, most) for flip in state.flips)
    return state if flips == state.flips else msgspec.structs.replace(state, flips=flips)


def _passed(flip: Flip, event: Event, most: int) -> Flip:
    turn, sequence = event.data.turn or "", int(event.sequence)
    # A persisted event repeats the number of the one before it, which may be this flip's.
    after = sequence > flip.sequence or (event.type is EventType.PERSISTED and sequence == flip.sequence)
    known = turn == flip.turn or turn in flip.since or len(flip.since) > most
    if flip.holder != event.data.holder or not after or known:
        return flip
    return msgspec.structs.replace(flip, since=(*flip.since, turn))
