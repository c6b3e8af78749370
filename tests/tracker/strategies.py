"""Builders and hypothesis strategies of what the tracker handles: observations, records, policies."""

import datetime as dt
from typing import Any

from hypothesis import strategies as st

from tracker import keys
from tracker.observations import Mark, Model, Observation, Probabilities
from tracker.policy import Policy, Threshold
from tracker.records import CreateTurn, DeclareTarget, HolderKind, Record, TargetStatus
from tracker.stances import Emotion, Expressed, Sentiment, Stance
from tracker.targets import Target

ROOM = "room-7"
MODEL = Model("rule", "1", "rule", "en")
START = dt.datetime(2026, 11, 29, 20, 0, tzinfo=dt.UTC)
HOLDERS = ("ann", "bo/b", "çem")
PROPOSITIONS = ("nuclear power", "school uniforms", "remote work", "a fourth", "a fifth")
CERTAIN = {Expressed(label): Probabilities.of({label: 1.0}) for label in Expressed}


def at(seconds: float) -> dt.datetime:
    return START + dt.timedelta(seconds=seconds)


def create(turn: str, text: str = "+1", seconds: float = 0.0, holder: str = "ann", **rest: Any) -> CreateTurn:
    return CreateTurn(conversation=ROOM, sent_at=at(seconds), turn=turn, holder=holder, text=text, **rest)


def declare(proposition: str, ident: str | None = None, seconds: float = 0.0, **rest: Any) -> DeclareTarget:
    ident = ident or f"declare {proposition} {rest}"
    return DeclareTarget(conversation=ROOM, sent_at=at(seconds), id=ident, proposition=proposition, **rest)


def debate(*records: Record) -> list[Record]:
    """The first proposition declared, then the records."""
    return [declare(PROPOSITIONS[0]), *records]


def observe(expressed: Expressed | Probabilities = Expressed.SUPPORT, **rest: Any) -> Observation:
    fields: dict[str, Any] = {
        "turn": "m-1",
        "revision": 0,
        "target": "t-1",
        "holder": "ann",
        "expressed": CERTAIN[expressed] if isinstance(expressed, Expressed) else expressed,
        "emotion": Emotion.NEUTRAL,
        "sentiment": Sentiment.NEUTRAL,
        "relevance": 1.0,
        "read_under": Stance.UNKNOWN,
        "model": MODEL,
    }
    return Observation(**(fields | rest))


@st.composite
def probabilities(draw: st.DrawFn) -> Probabilities:
    """Any distribution, certain and tied ones among them."""
    weights = draw(st.lists(st.integers(0, 20), min_size=4, max_size=4).filter(any))
    return Probabilities(*(weight / sum(weights) for weight in weights))


shares = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.5, 1.0])
thresholds = st.builds(Threshold, probability=shares, margin=shares)
policies = st.builds(
    Policy,
    name=st.sampled_from(["default", "strict"]),
    establish=thresholds,
    flip=thresholds,
    relevance=shares,
    exempt_holders=st.frozensets(st.sampled_from(HOLDERS), max_size=1),
    exempt_kinds=st.frozensets(st.sampled_from(HolderKind), max_size=2),
)
observations = st.builds(
    observe,
    expressed=probabilities(),
    relevance=shares,
    turn=st.sampled_from([f"m-{number}" for number in range(5)]),
    emotion=st.sampled_from(Emotion),
    sentiment=st.sampled_from(Sentiment),
    read_under=st.sampled_from(Stance),
    marks=st.lists(st.sampled_from(Mark), max_size=2, unique=True).map(tuple),
)


@st.composite
def creates(draw: st.DrawFn, number: int) -> CreateTurn:
    """The turn of that number; now and then late, exempt, or a reply."""
    return create(
        f"m-{number}",
        draw(st.sampled_from(["+1", "-1", "+0", "hm", "what?", "never", "yes and no"])),
        10 * number - draw(st.sampled_from([0, 0, 0, 5, 25])),
        draw(st.sampled_from(HOLDERS)),
        reply_to=draw(st.none() | st.integers(0, number).map("m-{}".format)),
        holder_kind=draw(st.sampled_from([HolderKind.USER, HolderKind.USER, HolderKind.BOT])),
    )


@st.composite
def declarations(draw: st.DrawFn, number: int) -> DeclareTarget:
    """A target record, which may well be refused."""
    replaced = draw(st.none() | st.sampled_from(PROPOSITIONS))
    return declare(
        draw(st.sampled_from(PROPOSITIONS)),
        f"d-{number}",
        10 * number,
        status=draw(st.sampled_from([TargetStatus.ACTIVE, TargetStatus.ACTIVE, TargetStatus.RETIRED])),
        replaces=target_of(replaced).id if replaced else None,
    )


@st.composite
def dialogues(draw: st.DrawFn, most: int = 30) -> list[Record]:
    """A conversation's records in order of arrival, with at least one target."""
    kinds = draw(st.lists(st.sampled_from([True, True, True, False]), max_size=most))
    found: list[Record] = [declare(proposition) for proposition in PROPOSITIONS[: draw(st.integers(1, 3))]]
    for number, turn in enumerate(kinds):
        found += [draw(creates(number))] if turn else [draw(declarations(number))]
    return found


def target_of(proposition: str, tenant: str = "default", **rest: Any) -> Target:
    return Target(keys.target_id(tenant, ROOM, proposition), proposition, **rest)
