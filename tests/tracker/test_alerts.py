"""Finding alerts: what each kind of rule raises, when it is silent, and what takes an alert back."""

import datetime as dt
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tracker.alert_builders import (
    ALL,
    BACK,
    BURST,
    FLIP,
    NEUTRAL,
    ONE_SOURCE,
    OPPOSE,
    SAME_WAY,
    SUPPORT,
    Room,
    fold,
    logs,
    minutes,
)
from tracker import alert_events
from tracker import alerts as module
from tracker.alert_events import AlertEvent, AlertType
from tracker.alert_rules import (
    FlipBackRule,
    Rule,
    Severity,
)
from tracker.alerts import CORRECTED_WITHIN, State, matters
from tracker.events import Event, EventType
from tracker.stances import Emotion, TriggerKind


def alerts(found: list[Event], *rules: Rule) -> list[AlertEvent]:
    return fold(found, rules)[1]


def test_a_flip_raises_an_alert_that_names_all_of_it() -> None:
    flip = Room("a/b").flip("u-1", seconds=5)
    [alert] = alerts([flip], msgspec.structs.replace(FLIP, severity=Severity.CRITICAL))
    told = msgspec.json.decode(alert_events.encode(alert))
    assert "sequence" not in told
    assert (told["type"], told["source"], told["subject"]) == (
        "volteface.alert.raised", "volteface/default/live/a%2Fb", "flip",
    )  # fmt: skip
    assert alert.time == flip.time
    assert told["data"] == {
        "tenant": "default", "run": "live", "conversation": "a/b", "rule": "flip", "kind": "flip",
        "severity": "critical", "target": msgspec.to_builtins(flip.data.target), "from": "support",
        "to": "oppose", "holders": ["u-1"], "count": 1, "events": [flip.id],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("filters", "taken"),
    [
        ({"before": (SUPPORT,), "after": (OPPOSE,)}, True),
        ({"before": (NEUTRAL,)}, False),
        ({"after": (SUPPORT,)}, False),
        ({"targets": ("t-0",)}, False),
        ({"targets": ("t-0",), "propositions": ("*THE Plan*",)}, True),
        ({"propositions": ("plan",)}, False),
        ({"emotions": (Emotion.ANGER, Emotion.FEAR)}, True),
        ({"emotions": (Emotion.JOY,)}, False),
        ({"triggers": (TriggerKind.SOCIAL_INFLUENCE,)}, True),
        ({"triggers": (TriggerKind.EMOTIONAL_VALUE,)}, False),
        ({"confidence": 0.9}, True),
        ({"confidence": 0.91}, False),
        ({"rooms": ("room-*",)}, True),
        ({"rooms": ("hall-*",)}, False),
        ({"exempt_rooms": ("room-*",)}, False),
        ({"exempt_holders": ("an?",)}, False),
        ({"exempt_holders": ("bo",)}, True),
        ({"tenants": ("other",)}, False),
    ],
    ids=str,
)
def test_filters_and_exemptions(filters: dict[str, Any], taken: bool) -> None:
    flip = Room().flip(emotion=Emotion.FEAR, by=["bo"], trigger=TriggerKind.SOCIAL_INFLUENCE)
    assert bool(alerts([flip], msgspec.structs.replace(FLIP, **filters))) is taken


def test_a_flip_without_trigger_or_emotion_meets_no_filter_of_them() -> None:
    flip = Room().flip(emotion=msgspec.UNSET, confidence=msgspec.UNSET)
    assert alerts([flip], FLIP)
    assert not alerts([flip], msgspec.structs.replace(FLIP, emotions=tuple(Emotion)))
    assert not alerts([flip], msgspec.structs.replace(FLIP, triggers=tuple(TriggerKind)))


def test_what_is_no_flip_raises_nothing() -> None:
    room = Room()
    others = [
        room.event(kind, "ann", SUPPORT, OPPOSE, 0)
        for kind in EventType
        if kind != "volteface.stance.flipped"
    ]
    assert not alerts(others, FLIP, BURST, SAME_WAY, ONE_SOURCE, BACK)


def test_a_cooldown_is_of_the_target_and_ends() -> None:
    room, rule = Room(), msgspec.structs.replace(FLIP, cooldown=minutes(1))
    flips = [
        room.flip("a", seconds=0),
        room.flip("b", seconds=59),
        room.flip("c", seconds=59, proposition="another"),
        room.flip("d", seconds=60),
    ]
    assert [alert.data.holders for alert in alerts(flips, rule)] == [("a",), ("c",), ("d",)]


def test_a_burst_is_so_many_within_the_time() -> None:
    room = Room()
    slow = [room.flip(f"u-{number}", seconds=301 * number) for number in range(4)]
    assert not alerts(slow, BURST)
    quick = [room.flip(f"v-{number}", OPPOSE, seconds=5000 + number) for number in range(5)]
    [alert] = alerts(slow + quick, BURST)
    assert alert.data.events == tuple(flip.id for flip in quick[:3])
    assert (alert.data.count, alert.data.holders) == (3, ("v-0", "v-1", "v-2"))


def test_a_burst_of_several_targets_and_directions_names_none() -> None:
    room = Room()
    flips = [
        room.flip("a"),
        room.flip("b", NEUTRAL, proposition="another"),
        room.flip("c", before=NEUTRAL),
    ]
    [alert] = alerts(flips, BURST)
    assert (alert.data.target, alert.data.before, alert.data.after) == (msgspec.UNSET,) * 3


def test_a_flip_that_comes_too_late_ends_nothing() -> None:
    room = Room()
    flips = [room.flip("a", seconds=1000), room.flip("b", seconds=1001), room.flip("c", seconds=1)]
    assert not alerts(flips, BURST)
    in_time = [*flips[:2], Room().flip("c", seconds=900)]
    assert alerts([*flips[:2], msgspec.structs.replace(in_time[2], sequence="9")], BURST)


def test_several_holders_moved_the_same_way_by_one() -> None:
    room = Room()
    flips = [
        room.flip("a", by=["zoe", "max"]),
        room.flip("a", by=["zoe"], seconds=1),  # the same holder
        room.flip("b", SUPPORT, before=OPPOSE, by=["zoe"], seconds=2),  # the other way
        room.flip("c", by=["zoe"], seconds=3, proposition="another"),  # another target
        room.flip("d", by=["max"], seconds=4),
        room.flip("e", by=["zoe"], seconds=5),
    ]
    by_max, by_zoe = alerts(flips, SAME_WAY)
    assert (by_max.data.source, by_max.data.holders) == ("max", ("a", "d"))
    assert (by_zoe.data.source, by_zoe.data.holders) == ("zoe", ("a", "e"))
    assert by_zoe.data.events == (flips[1].id, flips[5].id)
    assert by_zoe.data.after is OPPOSE


def test_nobody_is_the_source_of_their_own_flip_nor_is_an_exempt_holder() -> None:
    room = Room()
    flips = [room.flip("a", by=["a", "mod"]), room.flip("b", by=["a", "mod"])]
    rule = msgspec.structs.replace(SAME_WAY, exempt_holders=("mod",))
    assert not alerts(flips, rule)
    assert [alert.data.source for alert in alerts(flips, SAME_WAY)] == ["mod"]


def test_one_kind_of_trigger_again_and_again_from_one_source() -> None:
    room, social = Room(), TriggerKind.SOCIAL_INFLUENCE
    flips = [
        room.flip("a", by=["zoe"], trigger=social),
        room.flip("b", by=["zoe"]),  # another trigger
        room.flip("c", by=["max"], trigger=social),  # another source
        room.flip("a", SUPPORT, before=OPPOSE, by=["zoe"], trigger=social, seconds=60),
    ]
    [alert] = alerts(flips, ONE_SOURCE)
    assert (alert.data.source, alert.data.count) == ("zoe", 2)
    assert alert.data.events == (flips[0].id, flips[3].id)


def test_a_flip_back_within_the_time() -> None:
    room = Room()
    there, back = room.flip("a"), room.flip("a", SUPPORT, before=OPPOSE, seconds=600)
    [alert] = alerts([there, back], BACK)
    assert alert.data.events == (there.id, back.id)
    assert (alert.data.before, alert.data.after) == (msgspec.UNSET,) * 2
    assert not alerts([there, msgspec.structs.replace(back, time=back.time + minutes(1))], BACK)


def test_only_the_same_holder_flips_back_and_on_the_same_target() -> None:
    room = Room()
    others = [
        room.flip("a"),
        room.flip("b", SUPPORT, before=OPPOSE),
        room.flip("a", SUPPORT, before=OPPOSE, proposition="another"),
        room.flip("a", NEUTRAL, before=OPPOSE),
    ]
    assert not alerts(others, BACK)
    assert alerts([*others, room.flip("a", SUPPORT, before=NEUTRAL)], BACK)


def test_the_direction_of_a_flip_back_is_that_of_the_way_back() -> None:
    rule = msgspec.structs.replace(BACK, after=(SUPPORT,))
    room = Room()
    flips = [room.flip("a"), room.flip("a", SUPPORT, before=OPPOSE), room.flip("a")]
    assert [alert.data.events[1:] for alert in alerts(flips, rule) if alert.data.events] == [(flips[1].id,)]


@pytest.mark.parametrize(("between", "raised"), [(0, True), (1, True), (2, False)])
def test_a_flip_back_within_turns_counts_the_holders_alone(between: int, raised: bool) -> None:
    rule = FlipBackRule(name="back", turns=2)
    room = Room()
    first = room.flip("a")
    others = [room.persisted("b") for _ in range(5)]
    own = [room.persisted("a", turn=f"own-{number}") for number in range(between)]
    again = [room.persisted("a", turn=turn.data.turn, proposition="another") for turn in own]
    back = room.flip("a", SUPPORT, before=OPPOSE)
    assert bool(alerts([first, *others, *own, *again, *own, back], rule)) is raised


def test_a_turn_before_the_flip_that_comes_again_is_not_counted() -> None:
    rule = FlipBackRule(name="back", turns=1)
    room = Room()
    before = [room.flip("z"), room.persisted("a"), room.persisted("a")]
    flip = room.flip("a")
    back = room.flip("a", SUPPORT, before=OPPOSE)
    assert alerts([*before, flip, *before, flip, back], rule)


def test_a_retraction_takes_a_flip_out_of_what_is_counted() -> None:
    room = Room()
    first, second = room.flip("a"), room.flip("b")
    assert not alerts([first, second, room.retracted(second), room.flip("c")], BURST)


def test_an_alert_is_withdrawn_when_too_few_of_its_flips_are_left() -> None:
    room = Room()
    flips = [room.flip(f"u-{number}") for number in range(3)]
    retraction = room.retracted(flips[0], seconds=9)
    raised, withdrawn = alerts([*flips, retraction, retraction], BURST)
    assert msgspec.to_builtins(withdrawn.data) == {
        "tenant": "default", "run": "live", "conversation": "room-7", "rule": "burst", "kind": "burst",
        "severity": "warning", "withdraws": raised.id, "cause": retraction.id,
    }  # fmt: skip
    assert (withdrawn.type, withdrawn.time) == (AlertType.WITHDRAWN, retraction.time)


def test_an_alert_stays_while_enough_of_its_flips_are_left() -> None:
    room, rule = Room(), msgspec.structs.replace(BURST, cooldown=minutes(0))
    flips = [room.flip(f"u-{number}") for number in range(4)]
    first, second, *gone = alerts([*flips, room.retracted(flips[0])], rule)
    assert [each.data.withdraws for each in gone] == [first.id]
    assert second.data.count == 4
    _, _, *all_gone = alerts([*flips, room.retracted(flips[0]), room.retracted(flips[1])], rule)
    assert [each.data.withdraws for each in all_gone] == [first.id, second.id]


def test_after_a_withdrawal_the_rule_is_not_silent() -> None:
    room, rule = Room(), msgspec.structs.replace(FLIP, cooldown=minutes(60))
    wrong = room.flip("a")
    found = alerts([wrong, room.retracted(wrong), room.flip("a", seconds=1)], rule)
    assert [alert.type.rpartition(".")[2] for alert in found] == ["raised", "withdrawn", "raised"]
    assert len({alert.id for alert in found}) == 3


def test_an_erased_holder_is_named_nowhere_in_the_state() -> None:
    rules = (FLIP, SAME_WAY, BACK, ONE_SOURCE)
    room, social = Room(), TriggerKind.SOCIAL_INFLUENCE
    flips = [
        room.flip("xena", by=["max"]),
        room.flip("a", by=["xena"], trigger=social),
        room.flip("b", by=["xena", "max"], trigger=social),
        room.flip("xena", SUPPORT, before=OPPOSE),
    ]
    state, found = fold([*flips, room.forgotten("xena")], rules)
    assert {alert.data.rule for alert in found} == {"flip", "pull", "pressure", "back"}
    assert b"xena" not in msgspec.json.encode(state)
    assert {flip.holder for flip in fold(flips, rules)[0].flips} == {"xena", "a", "b"}


def test_an_erasure_that_comes_again_takes_nothing_newer() -> None:
    room = Room()
    gone, there = room.forgotten("a"), room.flip("a")
    back = room.flip("a", SUPPORT, before=OPPOSE)
    assert alerts([gone, there, gone, back], BACK)


def test_only_what_can_change_anything_matters() -> None:
    room = Room()
    persisted, flip = room.persisted(), room.flip()
    assert not matters(persisted, [FLIP, BACK])
    assert matters(persisted, [FLIP, FlipBackRule(name="turns", turns=3)])
    assert matters(flip, [FLIP])
    assert matters(room.retracted(flip), [FLIP])
    assert matters(room.forgotten("ann"), [FLIP])


def test_old_flips_and_alerts_are_dropped() -> None:
    room = Room()
    flips = [room.flip(f"u-{number}", seconds=number) for number in range(10)]
    later = room.flip("z", seconds=2 * CORRECTED_WITHIN.total_seconds())
    state, _ = fold([*flips, later], (FLIP, BURST))
    assert [flip.holder for flip in state.flips] == ["z"]
    assert [known.events for known in state.raised] == [(later.id,)]


def test_memory_is_bounded_where_nothing_grows_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FLIPS", 20)
    monkeypatch.setattr(module, "MOST_RAISED", 5)
    room = Room()
    flips = [room.flip(f"u-{number}") for number in range(30)]
    state, _ = fold(flips, (FLIP, BURST))
    assert [flip.id for flip in state.flips] == [flip.id for flip in flips[-20:]]
    burst, *others = [known.events for known in state.raised]
    assert burst == tuple(flip.id for flip in flips[:3])  # it keeps its rule silent, so it outlives others
    assert others == [(flip.id,) for flip in flips[-4:]]


@given(logs(), st.data())
def test_what_comes_again_changes_nothing(log: list[Event], data: st.DataObject) -> None:
    """After each event any stretch of the log up to it may come again, as after a crash."""
    again: list[Event] = []
    for end, event in enumerate(log, 1):
        again.append(event)
        if data.draw(st.booleans()):
            again += log[data.draw(st.integers(0, end)) : end]
    assert fold(again, ALL) == fold(log, ALL)


@given(logs(), st.integers(0, 25))
def test_a_state_that_is_kept_and_loaded_goes_on_as_it_was(log: list[Event], cut: int) -> None:
    state, first = fold(log[:cut], ALL)
    loaded = msgspec.json.decode(msgspec.json.encode(state), type=State)
    end, rest = fold(log[cut:], ALL, loaded)
    assert (end, first + rest) == fold(log, ALL)


@given(logs())
def test_each_alert_has_an_id_of_its_own_and_stands_on_flips_of_the_log(log: list[Event]) -> None:
    found = alerts(log, *ALL)
    raised = [alert for alert in found if alert.type is AlertType.RAISED]
    assert len({alert.id for alert in found}) == len(found)
    assert {event for alert in raised for event in alert.data.events or ()} <= {event.id for event in log}
    assert {alert.data.withdraws for alert in found} - {msgspec.UNSET} <= {alert.id for alert in raised}


@given(logs())
def test_what_is_kept_is_within_reach(log: list[Event]) -> None:
    def look(state: State) -> None:
        oldest = min((flip.time for flip in state.flips), default=state.clock)
        assert state.clock is None or oldest is None or state.clock - oldest <= minutes(10)

    fold(log, (FLIP, BURST, SAME_WAY, ONE_SOURCE, BACK), look=look)


def test_times_of_rules_are_bounded() -> None:
    with pytest.raises(ValueError, match="give turns, within or both"):
        FlipBackRule(name="endless")
    assert FlipBackRule(name="turns", turns=1).reach == dt.timedelta(days=30)
