"""A conversation with its ledger, corrected record by record; and a reader that counts what it is asked."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from tests.tracker.driver import Fake, Moody, advance, empty
from tests.tracker.strategies import at
from tracker.conversation import Conversation, Folded, Header, Rules
from tracker.corrections import needs_ledger
from tracker.events import Event, EventType
from tracker.folding import Answer, Read, Wanted
from tracker.ledger import LedgerEntry
from tracker.machine import StanceState
from tracker.records import CreateTurn, Record, Refused, record_id
from tracker.refold import Refold
from tracker.settlement import Outcome
from tracker.stances import Transition, TransitionKind


@dataclass
class Room:
    """What a stream would hold of one conversation."""

    rules: Rules = field(default_factory=Rules)
    reader: Fake = field(default_factory=Moody)
    conversation: Conversation = field(default_factory=empty)
    ledger: dict[int, LedgerEntry] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    asked: list[Wanted] = field(default_factory=list)

    def take(self, *records: Record) -> "Room":
        """Apply records as a stream does: repetitions and refused ones change nothing."""
        for record in records:
            try:
                self._take(record)
            except Refused:
                continue
        return self

    def _take(self, record: Record) -> None:
        if record_id(record) in {entry.id for entry in self.ledger.values()} or self._repeated(record):
            return
        outcome = self.refold(record) if self._needs(record) else self._advance(record)
        self.ledger |= {entry.arrival: entry for entry in (outcome.entry, *outcome.changed)}
        self.conversation = outcome.conversation
        self.outcomes.append(outcome)

    def _advance(self, record: Record) -> Outcome:
        return advance(self.conversation, record, self.rules, self.reader)

    def _repeated(self, record: Record) -> bool:
        created = {entry.turn for entry in self.ledger.values() if entry.op == "create"}
        return isinstance(record, CreateTurn) and record.turn in created

    def _needs(self, record: Record) -> bool:
        waits = {entry.turn for entry in self.ledger.values() if entry.waits}
        waited = isinstance(record, CreateTurn) and record.turn in waits
        return waited or needs_ledger(self.conversation.header, record, None, self.rules)

    def refold(self, record: Record) -> Outcome:
        """A correction's way: all that is wanted is read."""
        work = Refold(self.conversation, self.ledger, record, None, self.rules, "volteface.turns/0/1")
        while work.wanted:
            self.asked += work.wanted
            work.take([self._answer(wanted) for wanted in work.wanted])
        assert work.outcome is not None
        return work.outcome

    def _answer(self, wanted: Wanted) -> Answer:
        read = wanted if isinstance(wanted, Read) else wanted.read
        turn = CreateTurn(
            conversation="room-7",
            sent_at=at(0),
            turn=read.turn.turn,
            holder=read.turn.holder,
            text=read.turn.text,
            revision=read.revision,
        )
        if isinstance(wanted, Read):
            return self.reader.observe(turn, read.target, read.state)
        before, after = StanceState(read.state), StanceState(wanted.after)
        moved = Transition(TransitionKind.FLIP, read.state, wanted.after)
        return self.reader.explain(Folded(read.target, before, after, moved, wanted.observation))

    @property
    def events(self) -> list[Event]:
        return [event for outcome in self.outcomes for event in outcome.events]

    @property
    def standing(self) -> set[str]:
        """The ids of all events that stand, as the ledger says."""
        return {one.id for entry in self.ledger.values() for one in entry.standing}


def reads(asked: Iterable[Wanted]) -> list[Read]:
    return [one for one in asked if isinstance(one, Read)]


def heard(events: Iterable[Event]) -> dict[str, Event]:
    """What a subscriber ends with, who applies events and retractions in sequence."""
    known: dict[str, Event] = {}
    for event in events:
        if event.type is EventType.RETRACTED:
            del known[str(event.data.retracts)]
        elif event.type not in {EventType.PERSISTED, EventType.FORGOTTEN}:
            assert event.id not in known
            known[event.id] = event
    return known


def positions(events: Iterable[Event]) -> set[tuple[object, ...]]:
    """What events say of turns, whatever record led to them."""
    return {
        (one.data.turn, one.data.revision, one.data.holder, one.data.target.id, one.type,
         one.data.before, one.data.after, one.data.rationale, one.data.trigger)
        for one in events
    }  # fmt: skip


def unseen(conversation: Conversation) -> Conversation:
    """A conversation without what only counts how it came about."""
    return msgspec.structs.replace(conversation, header=Header(targets=conversation.header.targets))
