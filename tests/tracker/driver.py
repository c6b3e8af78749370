"""A small driver: takes records to their end one by one, as the stream does, with a reader of its own."""

import datetime as dt
import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from tests.tracker.strategies import CERTAIN, ROOM, observe
from tracker.conversation import (
    Admitted,
    Conversation,
    Folded,
    Rules,
    admitted,
    explained,
    folded,
    state_before,
)
from tracker.observations import Critic, Evidence, Explanation, Mark, Observation, Trigger
from tracker.records import CreateTurn, DeclareTarget, Record, Refused
from tracker.settlement import Outcome, settled
from tracker.stances import Expressed, Stance, TransitionKind, TriggerKind
from tracker.targets import Target

MARKERS = {"+1": Expressed.SUPPORT, "-1": Expressed.OPPOSE, "+0": Expressed.NEUTRAL}
Receipt = Callable[[Record], dt.datetime | None]


class Fake(Protocol):
    """A reader for tests: pure."""

    def observe(self, turn: CreateTurn, target: Target, state: Stance) -> Observation: ...

    def explain(self, fold: Folded) -> Explanation: ...


class Marked:
    """Reads the markers of engine `rule`, explains by the turn itself and refines nothing."""

    def observe(self, turn: CreateTurn, target: Target, state: Stance) -> Observation:
        expressed = MARKERS.get(turn.text[:2], Expressed.NONE)
        return observe(expressed, **subject(turn, target), read_under=state)

    def explain(self, fold: Folded) -> Explanation:
        return explanation(fold)


class Moody(Marked):
    """Reads what a digest says, of text, target and state, and refines about half of all flips."""

    def observe(self, turn: CreateTurn, target: Target, state: Stance) -> Observation:
        expressed = _any(turn.text, turn.turn, target.id, state)
        return observe(expressed, **subject(turn, target), read_under=state)

    def explain(self, fold: Folded) -> Explanation:
        first = fold.observation
        if len(_any("refine", first.turn, first.target)) % 2:
            return explanation(fold)
        again = CERTAIN[_any("again", first.turn, first.target)]
        marks = (*first.marks, Mark.REFINED)
        return explanation(fold, msgspec.structs.replace(first, expressed=again, marks=marks))


def subject(turn: CreateTurn, target: Target) -> dict[str, object]:
    return {"turn": turn.turn, "revision": turn.revision, "holder": turn.holder, "target": target.id}


def explanation(fold: Folded, refined: Observation | None = None) -> Explanation:
    seen = fold.observation
    trigger = Trigger(TriggerKind.SOCIAL_INFLUENCE, (seen.turn,), (seen.holder,), 0.5)
    critic = Critic.REFINED if refined else Critic.PASSED
    return Explanation(
        seen.turn, seen.target, trigger, (Evidence(seen.turn, "text"),), "why", critic, refined
    )


def _any(*parts: str) -> Expressed:
    return list(Expressed)[hashlib.sha256("|".join(parts).encode()).digest()[0] % len(Expressed)]


def empty(run: str = "live") -> Conversation:
    return Conversation("default", run, ROOM)


def read(conversation: Conversation, admission: Admitted, reader: Fake) -> list[Observation]:
    turn = admission.record
    if not isinstance(turn, CreateTurn):
        return []
    return [
        reader.observe(turn, target, state_before(conversation, turn.holder, target.id).stance)
        for target in admission.targets
    ]


def advance(
    conversation: Conversation,
    record: Record,
    rules: Rules,
    reader: Fake,
    receipt: dt.datetime | None = None,
) -> Outcome:
    """One record's whole way. Raises Refused."""
    assert isinstance(record, CreateTurn | DeclareTarget)
    admission = admitted(conversation, record, receipt, rules)
    folds = folded(conversation, admission, read(conversation, admission, reader), rules)
    done = [
        explained(conversation, fold, reader.explain(fold), rules)
        if fold.transition.kind is TransitionKind.FLIP
        else fold
        for fold in folds
    ]
    return settled(conversation, admission, done, rules, "volteface.turns/0/1")


def play(
    records: Iterable[Record],
    rules: Rules | None = None,
    reader: Fake | None = None,
    start: Conversation | None = None,
    receipt: Receipt = lambda record: None,
) -> list[Outcome]:
    """What applying the records one by one comes to; refused ones are left out."""
    conversation, outcomes = start or empty(), []
    for record in records:
        try:
            outcome = advance(conversation, record, rules or Rules(), reader or Moody(), receipt(record))
        except Refused:
            continue
        conversation = outcome.conversation
        outcomes.append(outcome)
    return outcomes


def last(outcomes: Sequence[Outcome]) -> Conversation:
    return outcomes[-1].conversation


def flips(outcome: Outcome) -> list[str]:
    return [event.data.holder for event in outcome.events if event.type.endswith("flipped")]
