"""A conversation's records of one batch, in order, and how far they have come.

One whose next record takes the ledger stalls: it leaves the waves until that record is refolded.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from stream import outbox
from stream.store.port import Commit, ConversationKey, Loaded, Need
from tracker import refold
from tracker.conversation import Admitted, Conversation, Rules, admitted
from tracker.corrections import needs_ledger
from tracker.ledger import Ledger, LedgerEntry
from tracker.records import CreateTurn, DeclareTarget, Reason, Record, Refused, record_id
from tracker.settlement import Outcome


@dataclass(frozen=True, slots=True)
class Item:
    """A parsed record of a batch: `index` is its place in the batch, `source` its place in the log."""

    index: int
    record: Record
    source: str = ""
    receipt: dt.datetime | None = None  # the broker's append time; None outside live mode


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record of a batch that is not applied."""

    index: int
    refused: Refused


@dataclass(slots=True)
class Chain:
    """One conversation's items, the conversation as it stands, and what came of the items so far."""

    key: ConversationKey
    items: list[Item]
    loaded: Loaded
    conversation: Conversation
    done: int = 0
    outcomes: list[Outcome] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    applied: set[str] = field(default_factory=set)
    created: set[str] = field(default_factory=set)
    awaited: set[str] = field(default_factory=set)  # turns that a correction waits for
    arrived: list[str] = field(default_factory=list)  # turns that had been awaited
    entries: dict[int, LedgerEntry] = field(default_factory=dict)  # new and changed ones
    ledger: Ledger | None = None  # as it was loaded
    stalled: bool = False

    @classmethod
    def start(cls, key: ConversationKey, items: list[Item], loaded: Loaded) -> "Chain":
        """A chain at its first item."""
        return cls(
            key,
            items,
            loaded,
            loaded.conversation,
            applied=set(loaded.applied),
            created=set(loaded.created),
            awaited=set(loaded.awaited),
        )

    @property
    def finished(self) -> bool:
        """Whether no item is left."""
        return self.done == len(self.items)

    @property
    def item(self) -> Item:
        """The next item."""
        return self.items[self.done]

    def admit(self, rules: Rules) -> Admitted | None:
        """What the next item needs; items applied before and refused ones are done on the way.

        None where no item is left, and where the next one stalls the chain.
        """
        while not self.finished:
            try:
                admission = self._admit(rules)
                if admission is not None or self.stalled:
                    return admission
                self.done += 1
            except Refused as refused:
                self.refuse(refused)
        return None

    def _admit(self, rules: Rules) -> Admitted | None:
        record = self.item.record
        if record_id(record) in self.applied:
            return None
        if isinstance(record, CreateTurn) and record.turn in self.created:
            remedy = "give every turn an id of its own"
            raise Refused(Reason.REPEATED_TURN, "turn", "a turn id that another record created", remedy)
        if not isinstance(record, CreateTurn | DeclareTarget) or self._takes_ledger(record, rules):
            self.stalled = True
            return None
        return admitted(self.conversation, record, self.item.receipt, rules)

    def _takes_ledger(self, record: Record, rules: Rules) -> bool:
        if isinstance(record, CreateTurn) and record.turn in self.awaited:
            return True
        return needs_ledger(self.conversation.header, record, self.item.receipt, rules)

    @property
    def lacking(self) -> frozenset[str]:
        """The holders whose states the items left may take and that are not loaded."""
        known, holders = self.known, {pin.holder for pin in self.conversation.header.pins}
        for item in self.items[self.done :]:
            holders |= refold.holders(known, item.record)
        return frozenset(holders) - need(self.key, self.items).holders

    @property
    def known(self) -> Ledger:
        """The ledger as it stands, if it was loaded."""
        assert self.ledger is not None
        return {**self.ledger, **self.entries}

    def add(self, loaded: Loaded) -> None:
        """The states that it lacked, as they were when the chain began."""
        holders = {**loaded.conversation.holders, **self.conversation.holders}
        self.conversation = msgspec.structs.replace(self.conversation, holders=holders)

    def reject(self, why: str) -> None:
        """Put the next item aside: the reader cannot take it."""
        remedy = "see the reader's log; retry once it can take this turn"
        self.refuse(Refused(Reason.FAILED, "turn", why, remedy))

    def refuse(self, refused: Refused) -> None:
        """Put the next item aside, unapplied."""
        self.refusals.append(Refusal(self.item.index, refused))
        self._pass()

    def _pass(self) -> None:
        self.done, self.stalled = self.done + 1, False

    def settle(self, outcome: Outcome) -> None:
        """Count the next item as applied."""
        record = self.item.record
        self.applied.add(record_id(record))
        if isinstance(record, CreateTurn):
            self.created.add(record.turn)
            if record.turn in self.awaited:
                self.awaited.remove(record.turn)
                self.arrived.append(record.turn)
        if outcome.entry.waits and outcome.entry.turn is not None:
            self.awaited.add(outcome.entry.turn)
        self.entries |= {entry.arrival: entry for entry in (*outcome.changed, outcome.entry)}
        self.conversation = outcome.conversation
        self.outcomes.append(outcome)
        self._pass()

    def commit(self, trim_before: dt.datetime | None) -> Commit:
        """All that the chain changed."""
        own = {outcome.entry.arrival for outcome in self.outcomes}
        states = {holder: self.conversation.holders.get(holder, {}) for holder in self._changed()}
        return Commit(
            key=self.key,
            expected=self.loaded.conversation.header.version,
            header=self.conversation.header,
            window=self.conversation.window,
            holders={holder: of_it for holder, of_it in states.items() if of_it},
            forgotten=[holder for holder, of_it in states.items() if not of_it],
            arrived=self.arrived,
            entries=[entry for arrival, entry in sorted(self.entries.items()) if arrival in own],
            changed=[entry for arrival, entry in sorted(self.entries.items()) if arrival not in own],
            outbox=outbox.messages(self.outcomes),
            trim_before=trim_before,
        )

    def _changed(self) -> list[str]:
        """The holders whose states the chain changed."""
        moved = {moved.holder for outcome in self.outcomes for moved in outcome.states}
        return sorted(moved | {holder for outcome in self.outcomes for holder, _ in outcome.forgotten})


def grouped(items: Sequence[Item]) -> dict[ConversationKey, list[Item]]:
    """The items of each conversation, in order."""
    chains: dict[ConversationKey, list[Item]] = {}
    for item in items:
        key = ConversationKey(item.record.tenant, item.record.conversation)
        chains.setdefault(key, []).append(item)
    return chains


def need(key: ConversationKey, items: list[Item]) -> Need:
    """What must be loaded to apply the items."""
    creates = [item.record for item in items if isinstance(item.record, CreateTurn)]
    holders = (getattr(item.record, "holder", None) for item in items)
    return Need(
        key,
        frozenset(holder for holder in holders if holder is not None),
        frozenset(record_id(item.record) for item in items),
        frozenset(record.turn for record in creates),
    )
