"""Whether each partition moves, judged from how far it is at one look and at the next. No clock, no Kafka.

A partition is due to do up to three things at once: fetch what the log holds, finish what was fetched, commit
what was acked. Each has a mark that changes as it goes on, and stalls where its mark stands still for longer
than it may. Records have gaps between them (markers of transactions, what aged out), so that what is fetched
is compared with the log's end, what is finished only with records that arrived.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stream.offsets import Partition, Place


class Verdict(enum.StrEnum):
    """What a partition does."""

    IDLE = "idle"  # nothing is due
    MOVING = "moving"  # something went on since the last look, or has just become due
    WAITING = "waiting"  # nothing did, within what is allowed: a part is away, or a slow reader works
    STALLED = "stalled"  # nothing did for longer


class Due(enum.StrEnum):
    """What a partition has to do next."""

    ANSWER = "answer"  # the consumer's thread says how far it is
    JOIN = "join"  # the group shares its partitions out
    FETCH = "fetch"
    FINISH = "finish"
    COMMIT = "commit"


NOWHERE = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """How far one partition is, in offsets; None where there is none, or none is known."""

    answers: bool = True  # the consumer's thread
    rebalance: int = 0  # the number of the one that goes on, if one does
    end: int | None = None  # of the log; None: the broker does not say
    position: int | None = None  # what is fetched next
    fetched: int | None = None  # the last record that was
    committed: int | None = None
    place: Place = NOWHERE
    in_hand: bool = True  # the agent has the first record in flight

    @property
    def works(self) -> bool:
        """Whether fetched records are unfinished."""
        return self.place.head is not None or self.before_agent

    @property
    def before_agent(self) -> bool:
        """Whether fetched records have not come to the agent yet."""
        begun = -1 if self.place.begun is None else self.place.begun
        return self.fetched is not None and self.fetched > begun

    @property
    def lag(self) -> int | None:
        """Offsets from the first unfinished record to the log's end."""
        if self.end is None:
            return None
        known = (
            (self.place.head, self.place.acked, self.committed)
            if self.works
            else (self.position, self.committed)
        )
        return max(0, self.end - next((offset for offset in known if offset is not None), 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All that is known at one look."""

    facts: Mapping[Partition, Facts]
    fetches: int = 0  # that came back since the start, whatever they brought
    signs: int = 0  # of the agent's life
    paused: bool = False  # the agent, since a part is away


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds that may go by without progress."""

    stall: float  # beyond what the work itself takes; 0: for ever
    routine: float  # what Faust does by itself every few seconds: fetch, commit
    batch: float  # a batch, with the calls it makes
    join: float  # a rebalance
    outage: float  # an attempt while a part is away, with all its time limits, and the pause after it

    def of(self, due: Due, *, paused: bool) -> float:
        """What the work that is due takes by itself, at most."""
        match due:
            case Due.FINISH:
                return self.batch + (self.outage if paused else 0.0)
            case Due.JOIN:
                return self.join
        return self.routine


class Judgement(NamedTuple):
    """What is said of one partition."""

    verdict: Verdict
    lag: int | None
    due: Due | None = None  # what is latest
    seconds: float = 0.0  # since that went on
    uncommitted: float = 0.0  # seconds since the last commit, where one is due
    over: bool = False  # stalled for twice as long as makes it so


class _Mark(NamedTuple):
    value: object
    since: float


class Progress:
    """Remembers since when nothing went on."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._marks: dict[Partition, dict[Due, _Mark]] = {}
        self._fetches = -1

    def look(self, now: float, look: Look) -> dict[Partition, Judgement]:
        """Judge every partition by what was known before and is known now."""
        # Faust fetches for all partitions in one loop, which stands still while the agent's queue is full.
        crowded = look.fetches == self._fetches and any(facts.before_agent for facts in look.facts.values())
        self._fetches = look.fetches
        self._marks = {
            partition: {
                due: self._mark(partition, due, value, now)
                for due, value in _dues(facts, look.signs, crowded).items()
            }
            for partition, facts in look.facts.items()
        }
        return {
            partition: self._judgement(
                facts,
                {due: now - mark.since for due, mark in self._marks[partition].items()},
                look.paused,
            )
            for partition, facts in look.facts.items()
        }

    def _mark(self, partition: Partition, due: Due, value: object, now: float) -> _Mark:
        before = self._marks.get(partition, {}).get(due)
        return before if before and before.value == value else _Mark(value, now)

    def _judgement(self, facts: Facts, quiet: Mapping[Due, float], paused: bool) -> Judgement:
        if not quiet:
            settled = facts.lag == 0 and not facts.rebalance
            return Judgement(Verdict.IDLE if settled else Verdict.WAITING, facts.lag)
        late = {due: seconds - self._limits.of(due, paused=paused) for due, seconds in quiet.items()}
        worst = max(late, key=late.__getitem__)
        stall = self._limits.stall
        verdict = Verdict.WAITING
        if stall and late[worst] >= stall:
            verdict = Verdict.STALLED
        elif 0.0 in quiet.values() and not paused:
            verdict = Verdict.MOVING
        over = bool(stall) and late[worst] >= 2 * stall
        return Judgement(verdict, facts.lag, worst, quiet[worst], quiet.get(Due.COMMIT, 0.0), over)


def _dues(facts: Facts, signs: int, crowded: bool) -> dict[Due, object]:
    """What is due, each with the mark that changes as it goes on; nothing that an absent broker prevents."""
    if not facts.answers:
        return {Due.ANSWER: None}
    dues: dict[Due, object] = {}
    if facts.rebalance:
        return dues if facts.end is None else {Due.JOIN: facts.rebalance}
    if facts.works:
        # In hand, or on its way there, a record waits while the agent works on others.
        own = not facts.in_hand and facts.place.head is not None
        dues[Due.FINISH] = (facts.place.head, facts.place.begun, None if own else signs)
    elif facts.lag and not crowded:
        dues[Due.FETCH] = facts.position
    if facts.end is not None and (facts.place.acked or 0) > (facts.committed or 0):
        dues[Due.COMMIT] = facts.committed
    return dues
