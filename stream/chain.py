"""A conversation's records of one batch, in order, and how far they have come."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field

from stream import outbox
from stream.store.port import Commit, ConversationKey, Loaded, Need
from tracker.conversation import Admitted, Conversation, Rules, admitted
from tracker.records import CreateTurn, Reason, Record, Refused, record_id
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

    @classmethod
    def start(cls, key: ConversationKey, items: list[Item], loaded: Loaded) -> "Chain":
        """A chain at its first item."""
        return cls(
            key, items, loaded, loaded.conversation, applied=set(loaded.applied), created=set(loaded.created)
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
        """What the next item needs; items applied before and refused ones are done on the way."""
        while not self.finished:
            try:
                if (admission := self._admit(rules)) is not None:
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
        return admitted(self.conversation, record, self.item.receipt, rules)

    def refuse(self, refused: Refused) -> None:
        """Put the next item aside, unapplied."""
        self.refusals.append(Refusal(self.item.index, refused))
        self.done += 1

    def settle(self, outcome: Outcome) -> None:
        """Count the next item as applied."""
        record = self.item.record
        self.applied.add(record_id(record))
        if isinstance(record, CreateTurn):
            self.created.add(record.turn)
        self.conversation = outcome.conversation
        self.outcomes.append(outcome)
        self.done += 1

    def commit(self, trim_before: dt.datetime | None) -> Commit:
        """All that the chain changed."""
        changed = {moved.holder for outcome in self.outcomes for moved in outcome.states}
        return Commit(
            key=self.key,
            expected=self.loaded.conversation.header.version,
            header=self.conversation.header,
            window=self.conversation.window,
            holders={holder: self.conversation.holders[holder] for holder in changed},
            entries=[outcome.journal.entry for outcome in self.outcomes],
            outbox=outbox.messages(self.outcomes),
            trim_before=trim_before,
        )


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
    return Need(
        key,
        frozenset(record.holder for record in creates),
        frozenset(record_id(item.record) for item in items),
        frozenset(record.turn for record in creates),
    )
