"""What leaves for the topics: the messages of an outcome, in the order they are sent."""

from collections.abc import Sequence

import msgspec

from stream.store.port import Message
from tracker import keys, records
from tracker.ledger import HeaderRow, StateRow
from tracker.records import Record
from tracker.settlement import Outcome

TURNS, JOURNAL, STATES, STANCES, FLIPS = "turns", "journal", "states", "stances", "flips"


def messages(outcomes: Sequence[Outcome]) -> dict[int, tuple[Message, ...]]:
    """The messages of a conversation's outcomes by arrival; the header's row stands with the last one."""
    sent = {outcome.journal.entry.arrival: _messages(outcome) for outcome in outcomes}
    if outcomes:
        last = outcomes[-1].journal.entry.arrival
        sent[last] = (*sent[last], _header(outcomes[-1]))
    return sent


def of_record(record: Record) -> Message:
    """A record as it is produced to the turns topic."""
    return Message(TURNS, keys.conversation_key(record.tenant, record.conversation), records.encode(record))


def _messages(outcome: Outcome) -> tuple[Message, ...]:
    journal = outcome.journal
    key = keys.conversation_key(journal.tenant, journal.conversation)
    sent = [Message(JOURNAL, key, msgspec.json.encode(journal))]
    sent += _states(outcome)
    for event in outcome.events:
        value = msgspec.json.encode(event)
        sent.append(Message(STANCES, key, value))
        if event.previous is not msgspec.UNSET:  # a flip, or the retraction of one
            sent.append(Message(FLIPS, key, value))
    # Last: what it led to is known before the log says that there is a new target.
    return (*sent, *map(of_record, outcome.found))


def _states(outcome: Outcome) -> list[Message]:
    journal = outcome.journal
    rows = (
        StateRow(
            tenant=journal.tenant,
            run=journal.run,
            conversation=journal.conversation,
            holder=moved.holder,
            target=moved.target,
            state=moved.state,
            version=moved.version,
        )
        for moved in outcome.states
    )
    sent = [(row.holder, row.target, msgspec.json.encode(row)) for row in rows]
    gone = [(holder, target, None) for holder, target in outcome.forgotten]
    return [
        Message(STATES, keys.holder_key(journal.tenant, journal.conversation, holder, target), value)
        for holder, target, value in [*sent, *gone]
    ]


def _header(outcome: Outcome) -> Message:
    journal = outcome.journal
    row = HeaderRow(
        tenant=journal.tenant, run=journal.run, conversation=journal.conversation, header=journal.header
    )
    return Message(STATES, keys.conversation_key(row.tenant, row.conversation), msgspec.json.encode(row))
