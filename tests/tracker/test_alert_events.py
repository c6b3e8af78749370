"""Alert events: what JSON has of them, their schema, and ids that depend on what made them alone."""

from typing import Any

import msgspec

from tests.tracker.alert_builders import BURST, FLIP, Room, fold
from tracker import alert_events
from tracker.alert_events import LISTED, AlertEvent
from tracker.alert_rules import BurstRule
from tracker.events import Event


def found(flips: list[Event], *rules: Any) -> list[AlertEvent]:
    return fold(flips, rules)[1]


def test_an_alert_decodes_to_what_was_encoded() -> None:
    room = Room()
    flip = room.flip("ü/1", by=["zoe"])
    for alert in found([flip, room.retracted(flip)], FLIP):
        assert msgspec.json.decode(alert_events.encode(alert), type=AlertEvent) == alert


def test_the_schema_says_what_is_always_there() -> None:
    schema: dict[str, Any] = alert_events.schema()
    definitions = schema["$defs"]
    assert "sequence" not in definitions["AlertEvent"]["properties"]
    assert set(definitions["Alert"]["required"]) == {
        "tenant", "run", "conversation", "rule", "kind", "severity",
    }  # fmt: skip


def test_ids_differ_by_tenant_run_conversation_rule_and_events() -> None:
    rooms = [Room(), Room("other"), Room(run="again"), Room(tenant="acme")]
    flips = [room.flip() for room in rooms] + [rooms[0].flip("bo")]
    alerts = [
        found([flip], rule)[0] for flip in flips for rule in (FLIP, msgspec.structs.replace(FLIP, name="b"))
    ]
    assert len({alert.id for alert in alerts}) == len(alerts)
    assert {len(alert.id) for alert in alerts} == {32}


def test_the_same_events_under_a_changed_rule_keep_the_id() -> None:
    flip = Room().flip()
    silent = msgspec.structs.replace(FLIP, cooldown=BURST.within)
    assert found([flip], FLIP)[0].id == found([flip], silent)[0].id


def test_an_alert_lists_the_newest_of_very_many() -> None:
    room = Room()
    rule = BurstRule(name="burst", count=2, within=BURST.within, cooldown=BURST.within * 0)
    flips = [room.flip(f"u-{number}") for number in range(LISTED + 1)]
    alert = found(flips, rule)[-1].data
    assert alert.count == LISTED + 1
    assert alert.events == tuple(flip.id for flip in flips[1:])
    assert alert.holders == tuple(flip.data.holder for flip in flips[1:])
