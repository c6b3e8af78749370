"""The ledger (what was applied, without text) and the journal (the same, as a topic)."""

import datetime as dt

import msgspec

from tracker.conversation import Header
from tracker.machine import StanceState
from tracker.observations import Explanation, Mark, Observation


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One applied record, compact: what a refold needs."""

    id: str
    op: str
    arrival: int
    sent_at: dt.datetime
    turn: str | None = None
    revision: int = 0
    holder: str | None = None
    observations: tuple[Observation, ...] = ()
    marks: tuple[Mark, ...] = ()


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
    """One applied record and all that it led to, without text: states can be put back from it.

    `source` is `<topic>/<partition>/<offset>` of the record, empty where it came from no topic.
    """

    tenant: str
    run: str
    conversation: str
    source: str
    entry: LedgerEntry
    explanations: tuple[Explanation, ...] = ()
    states: tuple[HolderState, ...] = ()  # those that this record changed
    header: Header  # after the record: version, sequences, targets


class HeaderRow(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation's header, as the compacted states topic carries it."""

    tenant: str
    run: str
    conversation: str
    header: Header
