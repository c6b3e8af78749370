"""What events say: the position a turn took, and the next number in a conversation's sequence."""

import datetime as dt

import msgspec

from tracker import events, pins, targets
from tracker.conversation import Conversation, Folded, Header, Rules, state_before
from tracker.events import Event, EventType, Position, TargetRef
from tracker.ledger import LedgerEntry
from tracker.machine import confidence
from tracker.observations import Mark, Observation
from tracker.policy import Policy
from tracker.records import CreateTurn
from tracker.stances import Stance, Transition, transition
from tracker.targets import Target


def of_fold(conversation: Conversation, fold: Folded, marks: tuple[Mark, ...], rules: Rules) -> Position:
    """What a turn did; `marks` are those of its record."""
    observation, explanation = fold.observation, fold.explanation
    position = msgspec.structs.replace(
        of_turn(conversation, observation, fold.target, fold.transition, rules.judging(observation)),
        emotion=observation.emotion,
        sentiment=observation.sentiment,
        confidence=confidence(observation, fold.transition.after),
        model=observation.model,
        marks=tuple(dict.fromkeys((*marks, *observation.marks))),
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


def of_entry(conversation: Conversation, fold: Folded, entry: LedgerEntry, rules: Rules) -> Position:
    """What a turn did, from its entry; where a person's word decided, whose and why."""
    data = of_fold(conversation, fold, entry.marks, rules)
    if entry.word is None:
        return data
    return msgspec.structs.replace(data, by=entry.word.by, reason=entry.word.reason)


def of_turn(
    conversation: Conversation,
    by: Observation | CreateTurn,
    target: Target,
    moved: Transition,
    policy: Policy,
) -> Position:
    """A position as far as it needs no reading."""
    position = of_state(conversation, by.holder, target, moved.before, moved.after, policy)
    return msgspec.structs.replace(position, turn=by.turn, revision=by.revision)


def of_state(
    conversation: Conversation, holder: str, target: Target, before: Stance, after: Stance, policy: Policy
) -> Position:
    """A position that no turn took."""
    return Position(
        tenant=conversation.tenant,
        run=conversation.run,
        conversation=conversation.name,
        revision=0,
        holder=holder,
        target=TargetRef(target.id, target.proposition),
        before=before,
        after=after,
        policy=policy.stamp,
        marks=(),
    )


def of_unread(
    conversation: Conversation, record: CreateTurn, marks: tuple[Mark, ...], rules: Rules
) -> list[Position]:
    """What is said of every active target at a turn that was not read, but of pinned states."""
    header, found = conversation.header, []
    pinned = pins.pinned(header.pins, record.holder)
    for target in targets.active(header.targets):
        if target.id not in pinned:
            stance = state_before(conversation, record.holder, target.id).stance
            data = of_turn(conversation, record, target, transition(stance, stance), rules.policy)
            found.append(msgspec.structs.replace(data, marks=marks))
    return found


def told(
    header: Header, data: Position, kind: EventType, time: dt.datetime, record: str, *, in_flips: bool
) -> tuple[Header, Event]:
    """The event, and the header that has counted it; persisted ones are not counted."""
    sequence = header.sequence + (kind is not EventType.PERSISTED)
    previous = header.flip_sequence if in_flips else None
    event = events.make(data, kind=kind, time=time, sequence=sequence, previous=previous, record=record)
    flip_sequence = sequence if in_flips else header.flip_sequence
    return msgspec.structs.replace(header, sequence=sequence, flip_sequence=flip_sequence), event
