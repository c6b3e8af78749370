"""Events for tests of alerts: flips of a conversation, numbered as the tracker numbers them."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.tracker.strategies import ROOM, at
from tracker import events, keys
from tracker.alert_events import AlertEvent
from tracker.alert_rules import BurstRule, FlipBackRule, FlipRule, OneSourceRule, Rule, SameWayRule
from tracker.alerts import State, detect
from tracker.events import Event, EventType, Position, TargetRef
from tracker.observations import Trigger
from tracker.stances import Emotion, Stance, TriggerKind


def minutes(count: float) -> dt.timedelta:
    return dt.timedelta(minutes=count)


FRESH = State()
SUPPORT, NEUTRAL, OPPOSE = Stance.SUPPORT, Stance.NEUTRAL, Stance.OPPOSE
FLIP = FlipRule(name="flip")
BURST = BurstRule(name="burst", count=3, within=minutes(10))
SAME_WAY = SameWayRule(name="pull", holders=2, within=minutes(10))
ONE_SOURCE = OneSourceRule(
    name="pressure", count=2, within=minutes(10), triggers=(TriggerKind.SOCIAL_INFLUENCE,)
)
BACK = FlipBackRule(name="back", within=minutes(10))
PLAN = "whether the plan is good"


class Room:
    """Makes a conversation's events in their order."""

    def __init__(self, name: str = ROOM, run: str = "live", tenant: str = "default") -> None:
        self._name, self._run, self._tenant = name, run, tenant
        self._sequence = self._turn = 0

    def flip(
        self,
        holder: str = "ann",
        to: Stance = Stance.OPPOSE,
        *,
        before: Stance = Stance.SUPPORT,
        seconds: float = 0.0,
        by: Sequence[str] = (),
        trigger: TriggerKind = TriggerKind.FACTUAL_LOGICAL,
        **rest: Any,
    ) -> Event:
        moved = Trigger(trigger, ("m-0",), tuple(by), 0.7) if by else None
        given: dict[str, Any] = {"trigger": moved} if moved else {}
        return self.event(EventType.FLIPPED, holder, before, to, seconds, **given | rest)

    def persisted(self, holder: str = "ann", seconds: float = 0.0, **rest: Any) -> Event:
        return self.event(EventType.PERSISTED, holder, Stance.SUPPORT, Stance.SUPPORT, seconds, **rest)

    def retracted(self, event: Event, seconds: float = 0.0) -> Event:
        data = event.data
        given: dict[str, Any] = {"turn": data.turn, "retracts": event.id, "cause": "a record"}
        return self.event(EventType.RETRACTED, data.holder, data.before, data.after, seconds, **given)

    def forgotten(self, holder: str, seconds: float = 0.0) -> Event:
        return self.event(EventType.FORGOTTEN, holder, Stance.OPPOSE, Stance.UNKNOWN, seconds)

    def event(
        self, kind: EventType, holder: str, before: Stance, after: Stance, seconds: float, **rest: Any
    ) -> Event:
        self._turn += 1
        self._sequence += kind is not EventType.PERSISTED
        proposition = rest.pop("proposition", PLAN)
        given: dict[str, Any] = {
            "turn": f"m-{self._turn}",
            "emotion": Emotion.NEUTRAL,
            "confidence": 0.9,
        } | rest
        target = TargetRef(keys.target_id(self._tenant, self._name, proposition), proposition)
        position = Position(
            tenant=self._tenant, run=self._run, conversation=self._name, revision=0, holder=holder,
            target=target, before=before, after=after, policy="p@1", marks=(), **given,
        )  # fmt: skip
        record = f"record {self._turn}"
        return events.make(
            position, kind=kind, time=at(seconds), sequence=self._sequence, previous=None, record=record
        )


def fold(
    found: Sequence[Event],
    rules: Sequence[Rule],
    state: State = FRESH,
    look: Callable[[State], None] = lambda state: None,
) -> tuple[State, list[AlertEvent]]:
    """The state after these events of one conversation, and their alerts in order."""
    alerts: list[AlertEvent] = []
    for event in found:
        state, more = detect(state, event, rules)
        alerts += more
        look(state)
    return state, alerts


ALL = (
    FLIP,
    msgspec.structs.replace(FLIP, name="cool", cooldown=minutes(1)),
    BURST,
    SAME_WAY,
    ONE_SOURCE,
    BACK,
    FlipBackRule(name="turns", turns=2),
)
PEOPLE = ["a", "b", "c"]


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """A conversation's events in their order: flips, late ones among them, retractions, turns."""
    room, found = Room(), list[Event]()
    for number in range(draw(st.integers(0, 25))):
        holder, seconds = draw(st.sampled_from(PEOPLE)), 40 * number - draw(st.sampled_from([0, 0, 90]))
        flips = [event for event in found if event.type is EventType.FLIPPED]
        what = draw(st.sampled_from(["flip", "flip", "flip", "persisted", "retracted", "forgotten"]))
        if what == "retracted" and flips:
            found.append(room.retracted(draw(st.sampled_from(flips)), seconds))
        elif what == "forgotten":
            found.append(room.forgotten(holder, seconds))
        elif what == "persisted":
            found.append(room.persisted(holder, seconds))
        else:
            before, after = draw(st.permutations([SUPPORT, NEUTRAL, OPPOSE]))[:2]
            by = draw(st.lists(st.sampled_from(PEOPLE), max_size=2, unique=True))
            trigger = draw(st.sampled_from([TriggerKind.SOCIAL_INFLUENCE, TriggerKind.FACTUAL_LOGICAL]))
            given: dict[str, Any] = {"before": before, "by": by, "trigger": trigger, "seconds": seconds}
            found.append(room.flip(holder, after, **given))
    return found
