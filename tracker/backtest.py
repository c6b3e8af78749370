"""A backtest: which flips a holder's turns come to under a candidate policy, beside those that stand. Pure.

The turns are folded by what live refolds with, from what was read of them, and nothing is read anew. Where
the state that a turn is folded from is neither the one that it was read under nor the one that the run
folded it from, live would have asked the model again: it is folded as it is and counted as `stale`.
"""

import datetime as dt
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from tracker.conversation import Rules
from tracker.events import EventType
from tracker.folding import Asking, Refolded, Turn, refolded, said
from tracker.ledger import LedgerEntry
from tracker.machine import StanceState, confidence
from tracker.observations import Mark, Observation, primary
from tracker.records import HolderKind
from tracker.stances import Stance, TransitionKind
from tracker.targets import HolderStates, Target, Targets

SOON = 3  # of the holder's own turns that were read: a slip rather than a change of mind

Key = tuple[int, str]  # a turn's arrival, and a target
Kind = Callable[[LedgerEntry], HolderKind | None]  # of a turn's holder; None where nothing tells it


class Change(enum.StrEnum):
    """What becomes of a flip under the candidate."""

    STANDS = "stands"
    APPEARS = "appears"
    VANISHES = "vanishes"
    CHANGES = "changes"  # from another stance, or to another one


class Flip(msgspec.Struct, kw_only=True):
    """A holder's flip at a turn, under one policy."""

    entry: LedgerEntry
    observation: Observation
    before: Stance
    after: Stance
    taken_back: bool = False  # soon: the holder's next flip goes back

    @property
    def confidence(self) -> float:
        """The probability of the position that made it."""
        return confidence(self.observation, self.after)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A flip in the base, under the candidate, or in both."""

    base: Flip | None
    candidate: Flip | None
    stale: bool  # live would have read the turn again

    @property
    def flip(self) -> Flip:
        """Either; their turn and target are the same."""
        flip = self.base or self.candidate
        assert flip is not None, "a case of no flip"
        return flip

    @property
    def change(self) -> Change:
        """What becomes of it."""
        if self.base is None:
            return Change.APPEARS
        if self.candidate is None:
            return Change.VANISHES
        same = (self.base.before, self.base.after) == (self.candidate.before, self.candidate.after)
        return Change.STANDS if same else Change.CHANGES

    @property
    def looks_false(self) -> bool:
        """Whether it is taken back soon, where it stands."""
        return any(flip is not None and flip.taken_back for flip in (self.base, self.candidate))

    @property
    def language(self) -> str:
        """Of the turn, as it was read."""
        return primary(self.flip.observation.model.language)


class Scene(msgspec.Struct, frozen=True):
    """A conversation's targets, and at which arrival those were declared that the journal tells of."""

    targets: Targets
    declared: Mapping[str, int] = {}

    def known(self, arrival: int) -> Targets:
        """The targets that there were when a turn arrived, as a refold takes them."""
        return tuple(one for one in self.targets if self.declared.get(one.id, 0) <= arrival)

    def target(self, ident: str) -> Target:
        """The target of that id."""
        return next(one for one in self.targets if one.id == ident)

    def line(self, ident: str) -> Iterator[str]:
        """A target, the one that it replaces, and so on."""
        replaces = {one.id: one.replaces for one in self.targets}
        at: str | None = ident
        while at is not None:
            yield at
            at = replaces.get(at)


def untold(entry: LedgerEntry) -> None:
    """The kind of a turn's holder, for who looks up none: a turn that was read is exempt by no kind."""


class Plan(msgspec.Struct, frozen=True):
    """What is compared with what, and at which turns; all turns are folded."""

    in_force: Rules
    candidate: Rules
    base: Rules | None = None  # None: the flips that stand, as the run's events told them
    since: dt.datetime | None = None
    kind: Kind = untold

    def tells(self, entry: LedgerEntry) -> bool:
        """Whether a turn is one of those asked about."""
        return self.since is None or entry.sent_at >= self.since

    def exempts(self, rules: Rules, entry: LedgerEntry) -> bool:
        """Whether a turn is not read under these rules, as far as it can be told."""
        if entry.holder is None or (kind := self.kind(entry)) is None:
            return entry.holder is None or entry.holder in rules.policy.exempt_holders
        return rules.policy.exempts(entry.holder, kind)


class Compared(msgspec.Struct):
    """What one holder's turns came to."""

    cases: list[Case] = []
    observations: int = 0  # that the candidate folds
    stale: int = 0  # of these: live would have read the turn again
    unread: int = 0  # turns that the candidate would have had read, and that were exempt
    unlike: int = 0  # flips that the policies in force give otherwise than they stand


def compared(turns: Iterable[LedgerEntry], scene: Scene, plan: Plan) -> Compared:
    """One holder's turns that were not taken back, given in the order of their places."""
    stood, found = _Stood(), Compared()
    now, candidate = _Folding(scene, plan.in_force, plan), _Folding(scene, plan.candidate, plan)
    base = None if plan.base is None else _Folding(scene, plan.base, plan)
    for entry in turns:
        stale, folded = -len(candidate.stale), candidate.take(entry)
        stale += len(candidate.stale)
        for side in (stood, now, *([] if base is None else [base])):
            side.take(entry)
        if plan.tells(entry):
            found.observations += folded
            found.stale += stale
            exempt = not entry.observations and plan.exempts(plan.in_force, entry)
            found.unread += exempt and not plan.exempts(plan.candidate, entry)
    found.cases = list(_cases(base or stood, candidate, plan))
    found.unlike = sum(one.change is not Change.STANDS for one in _cases(stood, now, plan))
    return found


class _Side:
    """The flips of one holder on one side of the comparison."""

    def __init__(self) -> None:
        self.flips: dict[Key, Flip] = {}
        self.stale: set[Key] = set()
        self._turns = 0
        self._last: dict[str, tuple[int, Flip]] = {}

    def take(self, entry: LedgerEntry) -> int:
        """The next turn; how many of its observations are folded."""
        self._turns += bool(entry.observations)
        return 0

    def _flipped(self, flip: Flip) -> None:
        target = flip.observation.target
        at, last = self._last.get(target, (0, None))
        if last is not None and self._turns - at <= SOON:
            last.taken_back = flip.after is last.before
        self._last[target] = self._turns, flip
        self.flips[flip.entry.arrival, target] = flip


class _Stood(_Side):
    """The flips that stand, as the run's events told them."""

    def take(self, entry: LedgerEntry) -> int:
        super().take(entry)
        seen = {one.target: one for one in entry.observations}
        for one in entry.standing:
            if one.kind is EventType.FLIPPED:
                shown = _shown(seen[one.target], entry)
                self._flipped(Flip(entry=entry, observation=shown, before=one.before, after=one.after))
        return len(seen)


class _Folding(_Side):
    """The flips that the turns come to under some rules."""

    def __init__(self, scene: Scene, rules: Rules, plan: Plan) -> None:
        super().__init__()
        self._scene, self._rules, self._plan = scene, rules, plan
        self._states: HolderStates = {}
        self._read: set[str] = set()  # targets

    def take(self, entry: LedgerEntry) -> int:
        if not entry.observations or self._plan.exempts(self._rules, entry):
            return 0
        super().take(entry)
        known = self._scene.known(entry.arrival)
        self._begin(entry)
        targets = tuple(self._scene.target(one.target) for one in entry.observations)
        turn = Turn(entry=entry, targets=targets, known=known, text=None, window=(), fresh=False)
        [folded] = (done := _done(refolded(self._states, [turn], self._rules))).turns
        self._states = done.states
        for fold, under in zip(folded.folds, entry.folded_under, strict=True):
            if Mark.STALE in fold.observation.marks and fold.before.stance is not under:
                self.stale.add((entry.arrival, fold.target.id))
            if fold.transition.kind is TransitionKind.FLIP and fold.target.id not in entry.silent:
                moved, seen = fold.transition, fold.observation
                self._flipped(Flip(entry=entry, observation=seen, before=moved.before, after=moved.after))
        return len(folded.folds)

    def _begin(self, entry: LedgerEntry) -> None:
        """States from before the journal: what the first turn that it tells of was folded from."""
        states = dict(self._states)
        for one, under in zip(entry.observations, entry.folded_under, strict=True):
            line = [*self._scene.line(one.target)]
            older = line[-1] not in self._scene.declared
            if older and not self._read.intersection(line) and under is not Stance.UNKNOWN:
                states[one.target] = StanceState(under)
        self._read |= {one.target for one in entry.observations}
        self._states = states


def _shown(observation: Observation, entry: LedgerEntry) -> Observation:
    return observation if entry.word is None else said(observation, entry.word)


def _done(asking: Asking[Refolded]) -> Refolded:
    """What turns without text are folded to: nothing is asked about them."""
    try:
        next(asking)
    except StopIteration as done:
        folded: Refolded = done.value
        return folded
    raise AssertionError("a turn without text cannot be read")


def _cases(base: _Side, candidate: _Side, plan: Plan) -> Iterator[Case]:
    stale = base.stale | candidate.stale
    for key in sorted(base.flips.keys() | candidate.flips.keys()):
        flips = base.flips.get(key), candidate.flips.get(key)
        one = Case(base=flips[0], candidate=flips[1], stale=key in stale)
        if plan.tells(one.flip.entry):
            yield one
