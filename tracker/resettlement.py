"""The end of a correction's way: ledger, states and events after it, and everything that leaves."""

from collections.abc import Iterator

import msgspec

from tracker import positions
from tracker.conversation import Conversation, Rules
from tracker.corrections import Correction
from tracker.events import Event, EventType, Position
from tracker.folding import Refolded
from tracker.ledger import HolderState, JournalEntry, Ledger, LedgerEntry, Standing
from tracker.records import CreateTurn
from tracker.settlement import Outcome, changed_states, standing_of
from tracker.stances import TransitionKind
from tracker.standing import Difference


def resettled(
    before: Conversation,
    after: Conversation,
    ledger: Ledger,
    correction: Correction,
    anew: Refolded,
    difference: Difference,
    rules: Rules,
    source: str,
) -> Outcome:
    """What a correction came to. `after` has its states, targets, window and pins."""
    after, events, standing = _told(after, ledger, correction, difference, rules)
    events += _persisted(after, correction, anew, rules)
    entries = _entries(ledger, correction, anew, standing)
    own = entries.pop(correction.arrival)
    changed = tuple(entry for arrival, entry in entries.items() if entry != ledger[arrival])
    states, forgotten = _moved(before, after, correction)
    journal = JournalEntry(
        tenant=after.tenant,
        run=after.run,
        conversation=after.name,
        source=source,
        entry=msgspec.structs.replace(own, text=None),
        states=states,
        forgotten=forgotten,
        changed=tuple(entry for entry in changed if not entry.gone),
        gone=tuple(entry.arrival for entry in changed if entry.gone),
        header=after.header,
    )
    return Outcome(after, own, journal, states, tuple(events), changed=changed, forgotten=forgotten)


def _told(
    conversation: Conversation, ledger: Ledger, correction: Correction, difference: Difference, rules: Rules
) -> tuple[Conversation, list[Event], dict[int, tuple[Standing, ...]]]:
    """The events, retractions first, the header that has counted them, and what stands in changed entries."""
    header, record, sent = conversation.header, correction.entry.id, []
    standing = dict(difference.standing)
    for old, one in difference.retracted:
        data = _retraction(conversation, old, one, record, rules)
        flip = one.kind is EventType.FLIPPED
        time = correction.entry.sent_at
        header, event = positions.told(header, data, EventType.RETRACTED, time, record, in_flips=flip)
        sent.append(event)
    for new in difference.told:
        flip = new.kind is EventType.FLIPPED
        header, event = positions.told(header, new.position, new.kind, new.time, record, in_flips=flip)
        sent.append(event)
        if new.arrival is not None:
            known = ledger.get(new.arrival, correction.entry).standing
            standing[new.arrival] = (*standing.get(new.arrival, known), *standing_of([event]))
    return msgspec.structs.replace(conversation, header=header), sent, standing


def _retraction(
    conversation: Conversation, old: LedgerEntry, one: Standing, record: str, rules: Rules
) -> Position:
    target = next(target for target in conversation.header.targets if target.id == one.target)
    assert old.holder is not None
    data = positions.of_state(conversation, old.holder, target, one.before, one.after, rules.policy)
    turn = old.turn or msgspec.UNSET  # none where it told of a state
    return msgspec.structs.replace(data, turn=turn, revision=old.revision, retracts=one.id, cause=record)


def _persisted(
    conversation: Conversation, correction: Correction, anew: Refolded, rules: Rules
) -> list[Event]:
    """Where they are asked for: what a turn that came with the record left as it was."""
    record, entry = correction.record, correction.entry
    if not rules.persisted or not isinstance(record, CreateTurn) or entry.gone:
        return []
    if correction.read:
        data = list(_unmoved(conversation, correction, anew, rules))
    else:
        data = positions.of_unread(conversation, record, entry.marks, rules)
    kind, time = EventType.PERSISTED, entry.sent_at
    return [positions.told(conversation.header, one, kind, time, entry.id, in_flips=False)[1] for one in data]


def _unmoved(
    conversation: Conversation, correction: Correction, anew: Refolded, rules: Rules
) -> Iterator[Position]:
    own = next(turn for turn in anew.turns if turn.entry.arrival == correction.arrival)
    for fold in own.folds:
        persists = fold.transition.kind is TransitionKind.PERSISTENCE
        if persists and fold.target.id not in own.entry.silent:
            yield positions.of_entry(conversation, fold, own.entry, rules)


def _entries(
    ledger: Ledger, correction: Correction, anew: Refolded, standing: dict[int, tuple[Standing, ...]]
) -> dict[int, LedgerEntry]:
    """The record's own entry, and all that may have changed."""
    entries = {**correction.changed, correction.arrival: correction.entry}
    entries |= {turn.entry.arrival: turn.entry for turn in anew.turns}
    for pin in correction.unpinned:
        if (known := entries.get(pin.arrival) or ledger.get(pin.arrival)) is not None:
            entries[pin.arrival] = msgspec.structs.replace(known, ended=correction.arrival)
    for arrival, events in standing.items():
        known = entries.get(arrival) or ledger[arrival]
        entries[arrival] = msgspec.structs.replace(known, standing=events)
    return entries


def _moved(
    before: Conversation, after: Conversation, correction: Correction
) -> tuple[tuple[HolderState, ...], tuple[tuple[str, str], ...]]:
    """The changed states, and those that are no more."""
    touched = () if correction.touched is None else (correction.touched,)
    states: list[HolderState] = []
    forgotten: list[tuple[str, str]] = []
    for holder in sorted({*correction.emptied, *touched}):
        were, are = before.holders.get(holder, {}), after.holders.get(holder, {})
        states += changed_states(holder, were, are, after.header.version)
        forgotten += [(holder, target) for target in sorted(were) if target not in are]
    return tuple(states), tuple(forgotten)
