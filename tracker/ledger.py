"""The ledger (what was applied, without text) and the journal (the same, as a topic)."""

import datetime as dt
from collections.abc import Mapping

import msgspec

from tracker import keys
from tracker.conversation import Header
from tracker.events import EventType
from tracker.machine import StanceState
from tracker.observations import Explanation, Mark, Observation
from tracker.records import DeclareTarget, EraseHolder, Record, op_of, record_id, revision_of
from tracker.stances import Expressed, Stance
from tracker.targets import Targets


class Standing(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event that was sent and holds until it is retracted by its id."""

    id: str
    kind: EventType
    target: str
    before: Stance
    after: Stance
    explained: bool = False  # whether it told the explanation that stands in its entry


class Word(msgspec.Struct, frozen=True):
    """What a person says a turn expresses, in place of what was read."""

    by: str
    reason: str
    to: Stance

    @property
    def label(self) -> Expressed:
        """The same as something expressed: that its holder's stance is unknown says nothing."""
        return Expressed.NONE if self.to is Stance.UNKNOWN else Expressed(self.to.value)


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One applied record, compact: what a refold needs.

    A turn's corrections change the entry of its create: `revision` is the last one applied, `gone` says that
    the turn was taken back (then nothing is left but its place). `text` stands in no entry but that of an
    edit that waits for its turn.
    """

    id: str
    op: str
    arrival: int
    sent_at: dt.datetime
    turn: str | None = None
    revision: int = 0
    holder: str | None = None
    target: str | None = None  # of a target record, or of an override of a state
    again: bool = False  # of a target record: its target had been declared before
    observations: tuple[Observation, ...] = ()
    under: tuple[Stance, ...] = ()  # they were folded under, where not all are those they were read under
    explanations: tuple[Explanation, ...] = ()  # of its flips
    standing: tuple[Standing, ...] = ()  # its events that hold
    silent: tuple[str, ...] = ()  # targets whose state was pinned when it arrived: it emits nothing for them
    word: Word | None = None  # that replaces what the turn expresses
    ended: int | None = None  # of an override of a state: the arrival that unpinned it
    gone: bool = False
    waits: bool = False  # a correction for a turn that has not come
    text: str | None = None
    marks: tuple[Mark, ...] = ()

    @property
    def place(self) -> tuple[dt.datetime, int]:
        """Where a turn is folded: by sent_at as it counts, then arrival."""
        return self.sent_at, self.arrival

    @property
    def folded_under(self) -> tuple[Stance, ...]:
        """The state that each of the observations was folded from."""
        return self.under or tuple(observation.read_under for observation in self.observations)

    @property
    def sides(self) -> Mapping[str, Expressed]:
        """The sides that the turn takes, by target, as it was read or as a person said."""
        took = {
            one.target: self.word.label if self.word else one.expressed.ranked()[0][0]
            for one in self.observations
        }
        return {target: side for target, side in took.items() if side is not Expressed.NONE}

    def explanation(self, target: str) -> Explanation | None:
        """Why the turn flipped its holder's stance toward a target, if it did."""
        return next((told for told in self.explanations if told.target == target), None)


Ledger = Mapping[int, LedgerEntry]  # by arrival


def entry_of(
    record: Record, arrival: int, sent_at: dt.datetime, marks: tuple[Mark, ...], known: Targets
) -> LedgerEntry:
    """A record's entry as far as the record says; `sent_at` as it counts. It never names an erased person.

    `known`: the targets before it.
    """
    target, again = getattr(record, "target", None), False
    if isinstance(record, DeclareTarget):
        target = keys.target_id(record.tenant, record.conversation, record.proposition)
        again = any(one.id == target for one in known)
    return LedgerEntry(
        id=record_id(record),
        op=op_of(record),
        arrival=arrival,
        sent_at=sent_at,
        turn=getattr(record, "turn", None),
        revision=revision_of(record),
        holder=None if isinstance(record, EraseHolder) else getattr(record, "holder", None),
        target=target,
        again=again,
        marks=marks,
    )


class HolderState(msgspec.Struct, frozen=True):
    """One holder's state toward one target, as the journal carries it."""

    holder: str
    target: str
    state: StanceState
    version: int  # of the conversation when this state was made; a lower one is ignored


class StateRow(msgspec.Struct, frozen=True, kw_only=True):
    """One state as the compacted states topic carries it."""

    tenant: str
    run: str
    conversation: str
    holder: str
    target: str
    state: StanceState
    version: int


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One applied record and all that it led to, without text: states and ledger can be put back from it.

    `source` is `<topic>/<partition>/<offset>` of the record, empty where it came from no topic.
    """

    tenant: str
    run: str
    conversation: str
    source: str
    entry: LedgerEntry
    states: tuple[HolderState, ...] = ()  # those that this record changed
    forgotten: tuple[tuple[str, str], ...] = ()  # holder and target of states that this record ended
    changed: tuple[LedgerEntry, ...] = ()  # other entries that it changed, but those of turns it took back
    gone: tuple[int, ...] = ()  # arrivals of the turns it took back
    header: Header  # after the record: version, sequences, targets


class HeaderRow(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation's header, as the compacted states topic carries it."""

    tenant: str
    run: str
    conversation: str
    header: Header
