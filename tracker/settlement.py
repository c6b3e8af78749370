"""The end of a record's way: the conversation after it, and everything that leaves."""

from collections.abc import Mapping, Sequence

import msgspec

from tracker import pins, positions, targets
from tracker.context import extended
from tracker.conversation import Admitted, Conversation, Folded, Header, Rules
from tracker.events import OF_TRANSITION, Event, EventType, Position
from tracker.ledger import HolderState, JournalEntry, LedgerEntry, Standing, entry_of
from tracker.observations import Explanation, Mark
from tracker.records import CreateTurn, DeclareTarget, record_id
from tracker.stances import TransitionKind
from tracker.targets import HolderStates


class Outcome(msgspec.Struct, frozen=True):
    """What applying one record came to."""

    conversation: Conversation
    entry: LedgerEntry  # its own
    journal: JournalEntry
    states: tuple[HolderState, ...]  # changed ones
    events: tuple[Event, ...]  # persisted ones included only where the rules ask for them
    found: tuple[DeclareTarget, ...] = ()  # records for the log
    changed: tuple[LedgerEntry, ...] = ()  # other entries, as they are after it
    forgotten: tuple[tuple[str, str], ...] = ()  # holder and target of states that are no more


def settled(
    conversation: Conversation,
    admission: Admitted,
    folds: Sequence[Folded],
    rules: Rules,
    source: str = "",
    found: tuple[DeclareTarget, ...] = (),
) -> Outcome:
    """Apply an admitted record: next version, states, window, events, ledger and journal entry.

    `found`: the target records that the Cartographer made at this turn.
    """
    header = _next_header(conversation.header, admission, found)
    states, holders = _moved(conversation, folds, header.version)
    known, silent = conversation.header.targets, _silent(conversation, folds)
    header, sent = _events(conversation, header, admission, folds, silent, rules)
    entry = msgspec.structs.replace(
        entry_of(admission.record, header.version, admission.sent_at, admission.marks, known),
        observations=tuple(fold.observation for fold in folds),
        explanations=_explanations(folds),
        standing=standing_of(sent),
        silent=silent,
    )
    window = conversation.window
    if admission.turn is not None:
        window = extended(window, msgspec.structs.replace(admission.turn, sides=entry.sides))
    after = msgspec.structs.replace(conversation, header=header, window=window, holders=holders)
    journal = JournalEntry(
        tenant=conversation.tenant,
        run=conversation.run,
        conversation=conversation.name,
        source=source,
        entry=entry,
        states=states,
        header=header,
    )
    return Outcome(after, entry, journal, states, sent, found)


def _next_header(header: Header, admission: Admitted, found: tuple[DeclareTarget, ...]) -> Header:
    newest = header.newest
    if admission.turn and Mark.LATE not in admission.marks:
        newest = admission.sent_at
    declared = header.targets if admission.declared is None else admission.declared
    came = record_id(admission.record)
    awaited = (*(ident for ident in header.awaited if ident != came), *(record.id for record in found))
    return msgspec.structs.replace(
        header, version=header.version + 1, newest=newest, targets=declared, awaited=awaited
    )


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
    return changed_states(holder, before, after, version), {**conversation.holders, holder: after}


def changed_states(
    holder: str, before: HolderStates, after: HolderStates, version: int
) -> tuple[HolderState, ...]:
    """A holder's states that are not as they were, by target: where batches end decides no order."""
    changed = ((target, after[target]) for target in sorted(after) if before.get(target) != after[target])
    return tuple(HolderState(holder, target, state, version) for target, state in changed)


def _explanations(folds: Sequence[Folded]) -> tuple[Explanation, ...]:
    """Without the refined observations, which are those that were folded."""
    told = (fold.explanation for fold in folds if fold.explanation)
    return tuple(msgspec.structs.replace(one, refined=None) for one in told)


def _silent(conversation: Conversation, folds: Sequence[Folded]) -> tuple[str, ...]:
    """The targets that the turn was read for beneath a pin."""
    return tuple(
        fold.target.id
        for fold in folds
        if pins.find(conversation.header.pins, fold.observation.holder, fold.target.id)
    )


def standing_of(sent: Sequence[Event]) -> tuple[Standing, ...]:
    """What is kept of events that may have to be retracted."""
    return tuple(
        Standing(
            id=event.id,
            kind=event.type,
            target=event.data.target.id,
            before=event.data.before,
            after=event.data.after,
            explained=event.data.trigger is not msgspec.UNSET,
        )
        for event in sent
        if event.type is not EventType.PERSISTED
    )


def _events(
    conversation: Conversation,
    header: Header,
    admission: Admitted,
    folds: Sequence[Folded],
    silent: tuple[str, ...],
    rules: Rules,
) -> tuple[Header, tuple[Event, ...]]:
    sent: list[Event] = []
    for fold in folds:
        kind = OF_TRANSITION[fold.transition.kind]
        if fold.target.id in silent or (kind is EventType.PERSISTED and not rules.persisted):
            continue
        position = positions.of_fold(conversation, fold, admission.marks, rules)
        header, event = _told(header, admission, position, kind)
        sent.append(event)
    record = admission.record
    if rules.persisted and not folds and isinstance(record, CreateTurn):
        unread = positions.of_unread(conversation, record, admission.marks, rules)
        sent += [_told(header, admission, data, EventType.PERSISTED)[1] for data in unread]
    return header, tuple(sent)


def _told(header: Header, admission: Admitted, data: Position, kind: EventType) -> tuple[Header, Event]:
    record, flips = record_id(admission.record), kind is EventType.FLIPPED
    return positions.told(header, data, kind, admission.sent_at, record, in_flips=flips)
