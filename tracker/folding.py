"""A holder's surviving turns, folded anew in the order of sent_at. Pure: it asks for what must be read.

An observation is folded as it stands where the state it is read under now is the one it was read under. Else
the turn is read again, if its text is at hand; if not, it is folded as it is and marked stale.
"""

from collections.abc import Generator, Iterable, Sequence
from typing import TypeVar

import msgspec

from tracker import targets as targeting
from tracker.context import Window, WindowTurn
from tracker.conversation import Folded, Rules, Subject, answered, subject
from tracker.ledger import LedgerEntry, Word
from tracker.machine import StanceState, step
from tracker.observations import Explanation, Mark, Observation, Probabilities
from tracker.stances import Stance, TransitionKind
from tracker.targets import HolderStates, Target, Targets


class Read(msgspec.Struct, frozen=True):
    """A turn to be read for one target."""

    turn: WindowTurn
    revision: int
    target: Target
    state: Stance
    window: Window
    needed: bool  # it was never read: without an answer its record cannot be applied


class Question(msgspec.Struct, frozen=True):
    """A flip to be explained."""

    read: Read
    observation: Observation
    after: Stance


Wanted = Read | Question
Answer = Observation | Explanation | None  # None: this cannot be read
_Result = TypeVar("_Result")
Asking = Generator[tuple[Wanted, ...], Sequence[Answer], _Result]


class Turn(msgspec.Struct, frozen=True):
    """A turn to be folded: for `targets`, of which those in `known` were declared when it arrived."""

    entry: LedgerEntry
    targets: Targets
    known: Targets
    text: WindowTurn | None  # None: it is not at hand any more
    window: Window  # before it
    fresh: bool  # read whatever stands

    def subject(self, target: Target) -> Subject:
        """What an observation of it is of."""
        assert self.entry.turn is not None
        assert self.entry.holder is not None
        return self.entry.turn, self.entry.revision, self.entry.holder, target.id


class FoldedTurn(msgspec.Struct, frozen=True):
    """A turn as it is folded now, and its holder's states after it."""

    entry: LedgerEntry
    folds: tuple[Folded, ...]
    states: HolderStates


class Refolded(msgspec.Struct, frozen=True):
    """A holder's states before the ledger's first turn, and the turns folded from there."""

    start: HolderStates = {}
    turns: tuple[FoldedTurn, ...] = ()

    @property
    def states(self) -> HolderStates:
        """The holder's states now."""
        return self.turns[-1].states if self.turns else self.start

    def before(self, arrival: int) -> HolderStates:
        """The holder's states as far as what had come before an arrival made them."""
        states = [turn.states for turn in self.turns if turn.entry.arrival < arrival]
        return states[-1] if states else self.start


def refolded(start: HolderStates, turns: Iterable[Turn], rules: Rules) -> Asking[Refolded]:
    """The turns, given in the order of their places, folded one after the other."""
    done: list[FoldedTurn] = []
    for one in turns:
        states = done[-1].states if done else start
        turn = msgspec.structs.replace(one, window=noted(one.window, done))
        done.append((yield from _turn(states, turn, rules)))
    return Refolded(start, tuple(done))


def noted(window: Window, turns: Iterable[FoldedTurn]) -> Window:
    """The window with the sides that its turns take as they are folded now."""
    now = {turn.entry.turn: turn.entry.sides for turn in turns}
    return tuple(
        msgspec.structs.replace(seen, sides=now[seen.turn]) if seen.turn in now else seen for seen in window
    )


def _turn(states: HolderStates, turn: Turn, rules: Rules) -> Asking[FoldedTurn]:
    before = [targeting.state_of(states, turn.known, target.id) for target in turn.targets]
    readings = yield from _read(turn, before)
    folds = [_fold(turn, *one, rules) for one in zip(turn.targets, before, readings, strict=True)]
    folds = yield from _explain(turn, folds, readings, rules)
    for fold in folds:
        if fold.transition.kind is not TransitionKind.PERSISTENCE:
            states = targeting.moved(states, turn.known, fold.target.id, fold.after)
    return FoldedTurn(_entry(turn, before, readings), tuple(folds), states)


class _Reading(msgspec.Struct):
    """An observation as it was read, and the explanation that came with it."""

    observation: Observation
    explanation: Explanation | None
    read: Read | None  # how it can be asked about


def _read(turn: Turn, before: Sequence[StanceState]) -> Asking[list[_Reading]]:
    stood = {one.target: one for one in turn.entry.observations}
    asked = {}
    for target, state in zip(turn.targets, before, strict=True):
        read, known = _reading(turn, target, state.stance), stood.get(target.id)
        moved = known is None or (known.read_under is not state.stance and turn.entry.word is None)
        if read is not None and (turn.fresh or moved):
            asked[target.id] = read
    answers = dict(zip(asked, (yield tuple(asked.values())) if asked else (), strict=True))
    readings = []
    for target, state in zip(turn.targets, before, strict=True):
        answer = answers.get(target.id)
        if isinstance(answer, Observation):
            answer = answered(turn.subject(target), answer)
            readings.append(_Reading(answer, None, asked[target.id]))
        else:
            kept = None if target.id in asked else _reading(turn, target, state.stance)
            readings.append(_Reading(stood[target.id], turn.entry.explanation(target.id), kept))
    return readings


def _reading(turn: Turn, target: Target, state: Stance) -> Read | None:
    if turn.text is None:
        return None
    text = msgspec.structs.replace(turn.text, sides={})  # what was heard in it before is no hint
    return Read(text, turn.entry.revision, target, state, turn.window, turn.fresh)


def _fold(turn: Turn, target: Target, before: StanceState, reading: _Reading, rules: Rules) -> Folded:
    word = turn.entry.word
    stale = reading.observation.read_under is not before.stance and word is None
    reading.observation = _marked(reading.observation, stale=stale)
    shown = reading.observation if word is None else said(reading.observation, word)
    after, moved = step(before, shown, rules.judging(shown))
    told = reading.explanation if word is None and not stale else None
    flipped = moved.kind is TransitionKind.FLIP
    return Folded(target, before, after, moved, shown, told if flipped else None)


def _explain(turn: Turn, folds: list[Folded], readings: list[_Reading], rules: Rules) -> Asking[list[Folded]]:
    asked = {
        at: Question(reading.read, fold.observation, fold.after.stance)
        for at, (fold, reading) in enumerate(zip(folds, readings, strict=True))
        if fold.transition.kind is TransitionKind.FLIP
        and reading.read is not None
        and fold.explanation is None
        and turn.entry.word is None
    }
    answers = (yield tuple(asked.values())) if asked else ()
    for at, answer in zip(asked, answers, strict=True):
        if isinstance(answer, Explanation):
            reading, fold = readings[at], folds[at]
            if answer.refined is not None:
                reading.observation = answered(subject(reading.observation), answer.refined)
            reading.explanation = msgspec.structs.replace(answer, refined=None)
            folds[at] = _fold(turn, fold.target, fold.before, reading, rules)
            if folds[at].explanation is None:  # refined away: there was no flip
                reading.explanation = None
    return folds


def _entry(turn: Turn, before: Sequence[StanceState], readings: Sequence[_Reading]) -> LedgerEntry:
    under = tuple(state.stance for state in before)
    observations = tuple(reading.observation for reading in readings)
    return msgspec.structs.replace(
        turn.entry,
        observations=observations,
        under=() if under == tuple(one.read_under for one in observations) else under,
        explanations=tuple(one.explanation for one in readings if one.explanation is not None),
    )


def _marked(observation: Observation, *, stale: bool) -> Observation:
    marks = tuple(mark for mark in observation.marks if mark is not Mark.STALE)
    return msgspec.structs.replace(observation, marks=(*marks, Mark.STALE) if stale else marks)


def said(observation: Observation, word: Word) -> Observation:
    """The observation with a person's word in place of what was read: certain, and surely relevant."""
    certain = Probabilities.of({word.label: 1.0})
    return msgspec.structs.replace(observation, expressed=certain, relevance=1.0)
