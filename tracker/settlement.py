"""The end of a record's way: the conversation after it, and everything that leaves."""

from collections.abc import Mapping, Sequence

import msgspec

from tracker import events, targets
from tracker.context import extended
from tracker.conversation import Admitted, Conversation, Folded, Header, Rules, state_before
from tracker.events import OF_TRANSITION, Event, EventType, Position, TargetRef
from tracker.ledger import HolderState, JournalEntry, LedgerEntry
from tracker.machine import confidence
from tracker.observations import Mark, Observation
from tracker.records import CreateTurn, op_of, record_id, revision_of
from tracker.stances import Transition, TransitionKind, transition
from tracker.targets import HolderStates, Target


class Outcome(msgspec.Struct, frozen=True):
    """What applying one record came to."""

    conversation: Conversation
    journal: JournalEntry
    states: tuple[HolderState, ...]  # changed ones
    events: tuple[Event, ...]  # persisted ones included only where the rules ask for them


def settled(
    conversation: Conversation, admission: Admitted, folds: Sequence[Folded], rules: Rules, source: str = ""
) -> Outcome:
    """Apply an admitted record: next version, states, window, events, ledger and journal entry."""
    header = _next_header(conversation.header, admission)
    states, holders = _moved(conversation, folds, header.version)
    header, sent = _events(conversation, header, admission, folds, rules)
    window = extended(conversation.window, admission.turn) if admission.turn else conversation.window
    after = msgspec.structs.replace(conversation, header=header, window=window, holders=holders)
    journal = JournalEntry(
        tenant=conversation.tenant,
        run=conversation.run,
        conversation=conversation.name,
        source=source,
        entry=_entry(admission, folds, header.version),
        explanations=tuple(fold.explanation for fold in folds if fold.explanation),
        states=states,
        header=header,
    )
    return Outcome(after, journal, states, sent)


def _next_header(header: Header, admission: Admitted) -> Header:
    newest = header.newest
    if admission.turn and Mark.LATE not in admission.marks:
        newest = admission.sent_at
    declared = header.targets if admission.declared is None else admission.declared
    return msgspec.structs.replace(header, version=header.version + 1, newest=newest, targets=declared)


def _moved(
    conversation: Conversation, folds: Sequence[Folded], version: int
) -> tuple[tuple[HolderState, ...], Mapping[str, HolderStates]]:
    """The changed states, each once, and all loaded holders with them."""
    moving = [fold for fold in folds if fold.transition.kind is not TransitionKind.PERSISTENCE]
    if not moving:
        return (), conversation.holders
    holder = moving[0].observation.holder  # a turn has one
    after = before = conversation.holders.get(holder, {})
    for fold in moving:
        after = targets.moved(after, conversation.header.targets, fold.target.id, fold.after)
    changed = (
        HolderState(holder, key, state, version) for key, state in after.items() if before.get(key) != state
    )
    return tuple(changed), {**conversation.holders, holder: after}


def _entry(admission: Admitted, folds: Sequence[Folded], arrival: int) -> LedgerEntry:
    record = admission.record
    return LedgerEntry(
        id=record_id(record),
        op=op_of(record),
        arrival=arrival,
        sent_at=admission.sent_at,
        turn=getattr(record, "turn", None),
        revision=revision_of(record),
        holder=getattr(record, "holder", None),
        observations=tuple(fold.observation for fold in folds),
        marks=admission.marks,
    )


def _events(
    conversation: Conversation, header: Header, admission: Admitted, folds: Sequence[Folded], rules: Rules
) -> tuple[Header, tuple[Event, ...]]:
    sent: list[Event] = []
    for fold in folds:
        kind = OF_TRANSITION[fold.transition.kind]
        if kind is EventType.PERSISTED and not rules.persisted:
            continue
        header, event = _event(
            conversation, header, admission, _position(conversation, admission, fold, rules), kind
        )
        sent.append(event)
    if rules.persisted and not folds:
        sent += _unread(conversation, header, admission, rules)
    return header, tuple(sent)


def _event(
    conversation: Conversation, header: Header, admission: Admitted, data: Position, kind: EventType
) -> tuple[Header, Event]:
    """The event, and the header that has counted it."""
    counted = kind is not EventType.PERSISTED
    sequence = header.sequence + counted
    event = events.make(
        data,
        kind=kind,
        time=admission.sent_at,
        sequence=sequence,
        previous=header.flip_sequence,
        record=record_id(admission.record),
    )
    flip_sequence = sequence if kind is EventType.FLIPPED else header.flip_sequence
    return msgspec.structs.replace(header, sequence=sequence, flip_sequence=flip_sequence), event


def _position(conversation: Conversation, admission: Admitted, fold: Folded, rules: Rules) -> Position:
    observation, explanation = fold.observation, fold.explanation
    position = msgspec.structs.replace(
        _plain(conversation, observation, fold.target, fold.transition, rules),
        emotion=observation.emotion,
        sentiment=observation.sentiment,
        confidence=confidence(observation, fold.transition.after),
        model=observation.model,
        marks=tuple(dict.fromkeys((*admission.marks, *observation.marks))),
    )
    if explanation is None:
        return position
    return msgspec.structs.replace(
        position,
        trigger=explanation.trigger,
        rationale=explanation.rationale,
        evidence=explanation.evidence,
        critic=explanation.critic,
    )


def _plain(
    conversation: Conversation, by: Observation | CreateTurn, target: Target, moved: Transition, rules: Rules
) -> Position:
    """A position as far as it needs no reading."""
    return Position(
        tenant=conversation.tenant,
        run=conversation.run,
        conversation=conversation.name,
        turn=by.turn,
        revision=by.revision,
        holder=by.holder,
        target=TargetRef(target.id, target.proposition),
        before=moved.before,
        after=moved.after,
        policy=rules.policy.stamp,
        marks=(),
    )


def _unread(conversation: Conversation, header: Header, admission: Admitted, rules: Rules) -> list[Event]:
    """A persisted event for every active target of a turn that was not read: late, or its holder exempt."""
    record = admission.record
    if not isinstance(record, CreateTurn):
        return []
    sent = []
    for target in targets.active(header.targets):
        stance = state_before(conversation, record.holder, target.id).stance
        data = _plain(conversation, record, target, transition(stance, stance), rules)
        data = msgspec.structs.replace(data, marks=admission.marks)
        sent.append(_event(conversation, header, admission, data, EventType.PERSISTED)[1])
    return sent
