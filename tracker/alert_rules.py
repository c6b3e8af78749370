"""Alert rules: which flips one takes, what it counts them by, and which of them make an alert.

Everything is counted in one conversation, by the clock of its flips: the newest time that one of them has.
"""

import datetime as dt
import enum
import fnmatch
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, ClassVar

import msgspec

from tracker.events import Position
from tracker.policy import Share
from tracker.stances import Emotion, Stance, TriggerKind

MOST_COUNT = 100  # flips that a rule may wait for
MOST_TURNS = 100
MOST_REACH = dt.timedelta(days=30)  # as long as the topic of events keeps them

Name = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,63}\Z")]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Texts = tuple[Text, ...]
Count = Annotated[int, msgspec.Meta(ge=2, le=MOST_COUNT)]
Turns = Annotated[int, msgspec.Meta(ge=1, le=MOST_TURNS)]

Subject = tuple[str, ...]  # what a rule counts flips by; it cools down for each by itself


class Severity(enum.StrEnum):
    """How much an alert matters."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Kind(enum.StrEnum):
    """What a rule looks for."""

    FLIP = "flip"  # one flip
    BURST = "burst"  # many in a conversation
    SAME_WAY = "same_way"  # several holders, to the same stance, moved by one holder
    ONE_SOURCE = "one_source"  # many flips that one holder moved
    FLIP_BACK = "flip_back"  # to a stance that the holder had left


class Flip(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a flip while rules count it."""

    id: str
    sequence: int
    time: dt.datetime
    turn: str
    holder: str
    target: str
    before: Stance
    after: Stance
    sources: tuple[str, ...]  # others whose turns moved the holder
    rules: tuple[str, ...]  # names of those that took it
    since: tuple[str, ...] = ()  # the holder's turns after it, as long as a rule counts them


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What every rule has: name, severity, cooldown, exemptions, and filters; an empty one takes all.

    Patterns are globs; those of propositions heed no case. An exempt holder's flips are not counted, nor is
    that holder named as a source.
    """

    kind: ClassVar[Kind]

    name: Name
    severity: Severity = Severity.WARNING
    cooldown: dt.timedelta | None = None  # None: as long as the rule looks back
    exempt_rooms: Texts = ()
    exempt_holders: Texts = ()
    tenants: Texts = ()
    rooms: Texts = ()
    targets: Texts = ()  # ids
    propositions: Texts = ()
    before: tuple[Stance, ...] = msgspec.field(name="from", default=())
    after: tuple[Stance, ...] = msgspec.field(name="to", default=())
    emotions: tuple[Emotion, ...] = ()
    triggers: tuple[TriggerKind, ...] = ()
    confidence: Share = 0.0  # at least

    @property
    def reach(self) -> dt.timedelta:
        """How far back flips count."""
        return dt.timedelta()

    @property
    def silence(self) -> dt.timedelta:
        """How long it raises nothing more for the same subject."""
        return self.reach if self.cooldown is None else self.cooldown

    @property
    def needs(self) -> int:
        """Flips without which an alert is withdrawn."""
        return 1

    def takes(self, data: Position) -> bool:
        """Whether a flip is one of this rule's."""
        return self._takes_place(data) and self._takes_content(data)

    def ends(self, data: Position) -> bool:
        """Whether a flip that it takes may be the last one of an alert."""
        return True

    def _takes_place(self, data: Position) -> bool:
        return (
            (not self.tenants or data.tenant in self.tenants)
            and (not self.rooms or _any(self.rooms, data.conversation))
            and not _any(self.exempt_rooms, data.conversation)
            and not _any(self.exempt_holders, data.holder)
            and self._takes_target(data)
        )

    def _takes_target(self, data: Position) -> bool:
        if not self.targets and not self.propositions:
            return True
        said = data.target.proposition.casefold()
        patterns = (pattern.casefold() for pattern in self.propositions)
        return data.target.id in self.targets or _any(patterns, said)

    def _takes_content(self, data: Position) -> bool:
        trigger = data.trigger.kind if data.trigger else None
        return (
            (not self.before or data.before in self.before)
            and (not self.after or data.after in self.after)
            and (not self.emotions or data.emotion in self.emotions)
            and (not self.triggers or trigger in self.triggers)
            and (data.confidence or 0.0) >= self.confidence
        )

    def subjects(self, flip: Flip) -> Iterable[Subject]:
        """What a flip counts for."""
        return [(flip.target,)]

    def made(self, flip: Flip, earlier: Sequence[Flip]) -> Sequence[Flip]:
        """Those that make an alert with this flip, itself last; none where they are too few.

        `earlier` ones count for the same subject, and are within reach.
        """
        return [flip]

    def keeps(self, flip: Flip, clock: dt.datetime) -> bool:
        """Whether a flip that it took still counts."""
        return self.reach > dt.timedelta() and clock - flip.time <= self.reach

    def sources(self, flip: Flip) -> list[str]:
        """Who moved the holder, without those who are exempt."""
        return [source for source in flip.sources if not _any(self.exempt_holders, source)]


class FlipRule(Rule, frozen=True, kw_only=True):
    """Every flip that the filters take; cools down by target."""

    kind: ClassVar[Kind] = Kind.FLIP


class _Within(Rule, frozen=True, kw_only=True):
    within: dt.timedelta

    @property
    def reach(self) -> dt.timedelta:
        """How far back flips count."""
        return self.within


class BurstRule(_Within, frozen=True, kw_only=True):
    """`count` flips of anybody; cools down by conversation."""

    kind: ClassVar[Kind] = Kind.BURST
    count: Count

    @property
    def needs(self) -> int:
        """Flips without which an alert is withdrawn."""
        return self.count

    def subjects(self, flip: Flip) -> Iterable[Subject]:
        """The conversation."""
        return [()]

    def made(self, flip: Flip, earlier: Sequence[Flip]) -> Sequence[Flip]:
        """All of them."""
        return _enough([*earlier, flip], self.count)


class OneSourceRule(_Within, frozen=True, kw_only=True):
    """`count` flips that one holder's turns triggered; cools down by that holder, the source."""

    kind: ClassVar[Kind] = Kind.ONE_SOURCE
    count: Count

    @property
    def needs(self) -> int:
        """Flips without which an alert is withdrawn."""
        return self.count

    def subjects(self, flip: Flip) -> Iterable[Subject]:
        """Each source."""
        return [(source,) for source in self.sources(flip)]

    def made(self, flip: Flip, earlier: Sequence[Flip]) -> Sequence[Flip]:
        """All of them."""
        return _enough([*earlier, flip], self.count)


class SameWayRule(_Within, frozen=True, kw_only=True):
    """So many `holders` flip to the same stance on a target, each moved by one holder's turns.

    Cools down by source, target and stance.
    """

    kind: ClassVar[Kind] = Kind.SAME_WAY
    holders: Count

    @property
    def needs(self) -> int:
        """Flips without which an alert is withdrawn."""
        return self.holders

    def subjects(self, flip: Flip) -> Iterable[Subject]:
        """Each source with the flip's target and stance."""
        return [(source, flip.target, flip.after) for source in self.sources(flip)]

    def made(self, flip: Flip, earlier: Sequence[Flip]) -> Sequence[Flip]:
        """The last one of each holder."""
        last = {each.holder: each for each in (*earlier, flip)}
        return _enough(sorted(last.values(), key=lambda each: each.sequence), self.holders)


class FlipBackRule(Rule, frozen=True, kw_only=True):
    """A holder flips to the stance that an earlier flip left; cools down by holder and target.

    `turns`: at most so many of the holder's turns after that flip, this one counted; `within`: at most that
    time. Where both are given both must hold. Stances, emotions, triggers and confidence are asked of the
    flip back alone.
    """

    kind: ClassVar[Kind] = Kind.FLIP_BACK
    turns: Turns | None = None
    within: dt.timedelta | None = None
    cooldown: dt.timedelta | None = dt.timedelta()

    def __post_init__(self) -> None:
        """Refuse a rule without an end."""
        if self.turns is None and self.within is None:
            raise ValueError("give turns, within or both")

    def takes(self, data: Position) -> bool:
        """Whether a flip is one of this rule's: it may be the first or the second one."""
        return self._takes_place(data)

    def ends(self, data: Position) -> bool:
        """Whether a flip may be the one back."""
        return self._takes_content(data)

    @property
    def reach(self) -> dt.timedelta:
        """How far back flips count."""
        return MOST_REACH if self.within is None else self.within

    @property
    def needs(self) -> int:
        """Flips without which an alert is withdrawn."""
        return 2

    def subjects(self, flip: Flip) -> Iterable[Subject]:
        """Holder and target."""
        return [(flip.holder, flip.target)]

    def made(self, flip: Flip, earlier: Sequence[Flip]) -> Sequence[Flip]:
        """The last flip that left the stance, and this one."""
        left = [each for each in earlier if each.before is flip.after]
        return [left[-1], flip] if left else []

    def keeps(self, flip: Flip, clock: dt.datetime) -> bool:
        """Whether it may still be taken back in time."""
        return super().keeps(flip, clock) and (self.turns is None or len(flip.since) <= self.turns)


KINDS: dict[Kind, type[Rule]] = {
    rule.kind: rule for rule in (FlipRule, BurstRule, SameWayRule, OneSourceRule, FlipBackRule)
}


def counted_turns(rules: Iterable[Rule]) -> int:
    """How many of a holder's turns any rule counts; 0: none does."""
    return max((rule.turns or 0 for rule in rules if isinstance(rule, FlipBackRule)), default=0)


def _enough(flips: Sequence[Flip], needed: int) -> Sequence[Flip]:
    return flips if len(flips) >= needed else []


_matches: Callable[[str, str], bool] = fnmatch.fnmatchcase


def _any(patterns: Iterable[str], text: str) -> bool:
    return any(_matches(text, pattern) for pattern in patterns)
