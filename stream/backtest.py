"""A run's journal folded under a candidate policy, beside what stands: which flips differ. No model is asked.

The journal is read as far as it reaches into a scratch file, as a rebuild reads it; then it is looked at
conversation by conversation, and in each holder by holder. What is found goes to a file, too: memory holds
the flips of one holder.
"""

import datetime as dt
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
import structlog
from aiokafka.errors import KafkaError

from stream import history, unfinished
from stream.entries import Unreadable, decoded, place_of
from stream.findings import Difference, Findings, Told
from stream.history import History, MissingTopics
from stream.kafka import in_words
from stream.scratch import Scratch, scratch
from stream.settings import Settings
from tracker import keys
from tracker.backtest import Case, Compared, Kind, Plan, Scene, compared
from tracker.events import TargetRef
from tracker.ledger import JournalEntry, LedgerEntry
from tracker.records import EPOCH, CreateTurn, HolderKind
from tracker.targets import Targets

log = structlog.get_logger(__name__)

ROOMS = 500  # conversations' names at once

_MICROSECOND = dt.timedelta(microseconds=1)
_entry = msgspec.json.Decoder(LedgerEntry)


class BacktestFailed(Exception):
    """The run cannot be read now; says why, and what to do."""


@dataclass(slots=True)
class Report:
    """What was looked at. Counts are of conversations, of messages, of observations, turns and flips."""

    conversations: int = 0
    partial: int = 0  # of whose beginning, or of some records, the journal tells nothing any more
    failed: int = 0
    unreadable: int = 0  # messages of the journal
    observations: int = 0  # folded under the candidate
    stale: int = 0  # of these: live would have asked the model again
    unread: int = 0  # turns that the candidate would have had read, and the policy in force exempts
    unlike: int = 0  # flips that the policies in force give otherwise than they stand
    kindless: int = 0  # turns of whose holder nothing tells the kind any more


async def run(settings: Settings, plan: Plan, found: Findings, conversations: Collection[str] = ()) -> Report:
    """Compare the settings' run as far as its journal reaches; `conversations` by name, none: all.

    Raises BacktestFailed.
    """
    try:
        with scratch() as journal, closing(sqlite3.connect("", isolation_level=None)) as database:
            work = _Backtest(journal, _Turns(database), plan, found)
            async with history.reading(settings) as read:
                await work.gather(read, frozenset(conversations))
            return work.run()
    except MissingTopics as missing:
        raise BacktestFailed(str(missing)) from missing
    except sqlite3.Error as error:
        remedy = "make room there, or name another folder in TMPDIR"
        raise BacktestFailed(f"the scratch files in the temporary folder: {error}; {remedy}") from error
    except (KafkaError, TimeoutError, OSError) as error:
        raise BacktestFailed(f"the topics cannot be read: {in_words(error)}") from error


class _Backtest:
    def __init__(self, journal: Scratch, turns: "_Turns", plan: Plan, found: Findings) -> None:
        self._journal, self._turns, self._plan, self._found = journal, turns, plan, found
        self._report, self._topic = Report(), ""

    async def gather(self, read: History, conversations: frozenset[str]) -> None:
        """The journal into the scratch file; and the records, where a kind of holder must be looked up."""
        self._topic = read.turns
        async for messages in read.messages("journal"):
            wanted = [one for one in messages if not conversations or _named(one.key) in conversations]
            self._journal.journal(self._decoded(wanted))
        if self._asks_kinds:
            for room in self._rooms():
                places = (place_of(source, self._topic) for _, source in self._journal.sources(room))
                self._journal.want(place for place in places if place is not None)
            await unfinished.look_up(read, self._journal)

    @property
    def _asks_kinds(self) -> bool:
        """Whether the policies exempt by kind otherwise than each other: no journal tells kinds."""
        plan = self._plan
        rules = [plan.in_force, plan.candidate, *([] if plan.base is None else [plan.base])]
        return len({one.policy.exempt_kinds for one in rules}) > 1

    def _decoded(self, messages: Iterable[Any]) -> Iterator[tuple[JournalEntry, bytes]]:
        for one in messages:
            try:
                yield decoded(one.value), one.value
            except Unreadable:
                self._report.unreadable += 1
                place = {"topic": one.topic, "partition": one.partition, "offset": one.offset}
                log.warning("backtest.unreadable", **place)

    def _rooms(self) -> Iterator[bytes]:
        for page in self._journal.rooms(ROOMS):
            yield from page

    def run(self) -> Report:
        """Conversation by conversation; one that fails is told, and the others go on."""
        for room in self._rooms():
            self._report.conversations += 1
            try:
                self._room(room)
            except sqlite3.Error:
                raise
            except Exception as error:
                self._report.failed += 1
                name = room.decode(errors="replace")
                log.error("backtest.failed", conversation=name, error=type(error).__name__)
        return self._report

    def _room(self, room: bytes) -> None:
        told = self._turns.take(self._journal.entries(room))
        self._report.partial += told.partial
        kind = self._kind(room) if self._asks_kinds else self._plan.kind
        plan = msgspec.structs.replace(self._plan, kind=kind)
        for turns in self._turns.by_holder():
            found = compared(turns, Scene(told.targets, told.declared), plan)
            self._count(found)
            self._found.add(_difference(case, told) for case in found.cases)

    def _count(self, found: Compared) -> None:
        self._report.observations += found.observations
        self._report.stale += found.stale
        self._report.unread += found.unread
        self._report.unlike += found.unlike

    def _kind(self, room: bytes) -> Kind:
        """What records say of their holders, as far as the turns topic still holds them."""

        @lru_cache(maxsize=1)  # a turn is asked about once a policy
        def of(arrival: int) -> HolderKind | None:
            entry = self._journal.entry(room, arrival)
            record = unfinished.record_of(self._journal, entry, self._topic)
            if isinstance(record, CreateTurn):
                return record.holder_kind
            self._report.kindless += 1
            return None

        return lambda entry: of(entry.arrival)


@dataclass(slots=True)
class _Told:
    """What a conversation's journal tells of it beside its turns."""

    last: JournalEntry
    partial: bool = False
    declared: dict[str, int] = field(default_factory=dict)

    @property
    def targets(self) -> Targets:
        return self.last.header.targets


class _Turns:
    """The turns of one conversation at a time that were not taken back, by holder and place."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._database.executescript(
            """
            PRAGMA journal_mode = OFF;
            PRAGMA synchronous = OFF;
            CREATE TABLE turns (arrival INTEGER PRIMARY KEY, holder TEXT, sent_at INTEGER, entry BLOB);
            """
        )

    def take(self, entries: Iterable[JournalEntry]) -> _Told:
        """Forget the one before; apply a conversation's entries by arrival, as a rebuild does."""
        self._database.execute("DELETE FROM turns")
        told, arrival = None, 0
        for one in entries:
            told = told or _Told(one)
            told.partial |= one.entry.arrival != arrival + 1
            told.last, arrival = one, one.entry.arrival
            if one.entry.op == "target" and one.entry.target is not None and not one.entry.again:
                told.declared[one.entry.target] = arrival
            self._put(one)
        assert told is not None, "a conversation without entries is not in the journal"
        return told

    def _put(self, one: JournalEntry) -> None:
        turns = [each for each in (one.entry, *one.changed) if each.op == "create" and not each.gone]
        rows = [
            (each.arrival, each.holder, (each.sent_at - EPOCH) // _MICROSECOND, msgspec.json.encode(each))
            for each in turns
        ]
        self._database.executemany("INSERT OR REPLACE INTO turns VALUES (?, ?, ?, ?)", rows)
        self._database.executemany("DELETE FROM turns WHERE arrival = ?", [(gone,) for gone in one.gone])

    def by_holder(self) -> Iterator[Iterator[LedgerEntry]]:
        """Each holder's turns, in the order of their places."""
        statement = "SELECT holder, entry FROM turns ORDER BY holder, sent_at, arrival"
        with closing(self._database.execute(statement)) as found:
            for _, rows in groupby(found, key=itemgetter(0)):
                yield (_entry.decode(raw) for _, raw in rows)


def _named(key: bytes | None) -> str | None:
    """The conversation of a key."""
    try:
        return keys.parse_conversation_key(key or b"")[1]
    except keys.MalformedKey:
        return None


def _difference(case: Case, told: _Told) -> Difference:
    flip, last = case.flip, told.last
    assert flip.entry.turn is not None
    assert flip.entry.holder is not None
    target = next(one for one in told.targets if one.id == flip.observation.target)
    return Difference(
        change=case.change,
        tenant=last.tenant,
        run=last.run,
        conversation=last.conversation,
        holder=flip.entry.holder,
        target=TargetRef(target.id, target.proposition),
        turn=flip.entry.turn,
        sent_at=flip.entry.sent_at,
        language=case.language,
        base=Told.of(case.base),
        candidate=Told.of(case.candidate),
        looks_false=case.looks_false,
        stale=case.stale,
        partial=told.partial,
    )
