"""Events in JSON: the fields of DESIGN.md's example, their schema, and no text of anybody's."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.tracker.driver import Marked, play
from tests.tracker.strategies import PROPOSITIONS, create, debate, dialogues, target_of
from tracker import events
from tracker.conversation import Rules
from tracker.events import Event, EventType
from tracker.records import Record

EXAMPLE = json.loads(
    """
{"specversion": "1.0", "id": "9f2c...", "source": "volteface/default/live/room-7",
 "type": "volteface.stance.flipped", "sequence": "00000000000000000041", "subject": "u-18/t-5b0c9a7d1e22",
 "time": "2026-11-29T20:14:05.120Z", "datacontenttype": "application/json",
 "dataschema": "urn:volteface:stance:1",
 "data": {"tenant": "default", "run": "live", "conversation": "room-7", "turn": "m-1042", "revision": 0,
          "holder": "u-18",
          "target": {"id": "t-5b0c9a7d1e22", "proposition": "The debate concerning whether ..."},
          "from": "support", "to": "oppose",
          "emotion": "sadness", "sentiment": "negative", "confidence": 0.87,
          "trigger": {"kind": "factual_logical", "turns": ["m-1040"], "holders": ["u-4"], "confidence": 0.71},
          "rationale": "...", "evidence": [{"turn": "m-1042", "modality": "text"}], "critic": "passed",
          "model": {"name": "...", "revision": "...", "engine": "encoder", "language": "en"},
          "policy": "...", "marks": []}}
"""
)
SECRET = "+1 my very own words"
ALL = Rules(persisted=True)


def _shape(value: Any) -> Any:
    """Names and kinds of values, however deep."""
    if isinstance(value, dict):
        return {name: _shape(inner) for name, inner in value.items()}
    return [_shape(value[0])] if isinstance(value, list) and value else type(value)


def _course() -> list[Event]:
    texts = ("hm", SECRET, "-1 no")
    turns = [create(f"m-{number}", text, number, "ü/1") for number, text in enumerate(texts)]
    outcomes = play(debate(*turns), ALL, Marked())
    return [event for outcome in outcomes for event in outcome.events]


PERSISTED, ESTABLISHED, FLIPPED = _course()


def test_designs_example_decodes_and_encodes_to_itself() -> None:
    example = EXAMPLE | {"previous": "00000000000000000037"}
    event = msgspec.convert(example, Event)
    again = json.loads(events.encode(event))
    assert again.pop("time") == "2026-11-29T20:14:05.120000Z"
    assert again == {name: value for name, value in example.items() if name != "time"}


def test_a_flip_has_the_examples_fields_and_previous() -> None:
    flipped = json.loads(events.encode(FLIPPED))
    assert flipped.pop("previous") == "00000000000000000000"
    assert _shape(flipped) == _shape(EXAMPLE)


@pytest.mark.parametrize("event", [PERSISTED, ESTABLISHED], ids=["persisted", "established"])
def test_what_needs_no_explanation_has_the_sextuple_alone(event: Event) -> None:
    shown, example = json.loads(events.encode(event)), _shape(EXAMPLE)
    for name in ("trigger", "rationale", "evidence", "critic"):
        del example["data"][name]
    assert _shape(shown) == example


def test_the_envelope_is_cloudevents_1_0() -> None:
    assert FLIPPED.specversion == "1.0"
    assert FLIPPED.source == "volteface/default/live/room-7"
    assert FLIPPED.subject == f"%C3%BC%2F1/{target_of(PROPOSITIONS[0]).id}"
    assert (FLIPPED.sequence, FLIPPED.previous) == (f"{2:020}", f"{0:020}")
    assert len(FLIPPED.id) == 32
    assert set(FLIPPED.id) <= set("0123456789abcdef")


@pytest.mark.parametrize("event", [PERSISTED, ESTABLISHED, FLIPPED], ids=lambda event: event.type.name)
def test_no_event_quotes_a_turn(event: Event) -> None:
    assert b"my very own" not in events.encode(event)


@given(dialogues())
def test_events_survive_json(records: list[Record]) -> None:
    for outcome in play(records, ALL):
        for event in outcome.events:
            assert msgspec.json.decode(events.encode(event), type=Event) == event


@pytest.mark.parametrize("number", [0, 41, 10**19])
def test_sequences_have_20_digits(number: int) -> None:
    assert (len(events.numbered(number)), int(events.numbered(number))) == (20, number)


def test_sequences_sort_as_strings() -> None:
    numbers = [9, 10, 99, 100, 10**15]
    assert sorted(map(events.numbered, numbers)) == [events.numbered(number) for number in numbers]


@pytest.mark.parametrize(
    "field", ["tenant", "run", "conversation", "turn", "revision", "holder", "before", "after"]
)
def test_every_part_of_a_position_changes_the_id(field: str) -> None:
    other = {"revision": 7, "before": "neutral", "after": "neutral"}.get(field, "other")
    data = msgspec.structs.replace(FLIPPED.data, **{field: other})
    assert _made(data).id != _made(FLIPPED.data).id == FLIPPED.id


@pytest.mark.parametrize("changed", [{"kind": EventType.ESTABLISHED}, {"record": "another"}])
def test_type_and_record_change_the_id(changed: dict[str, Any]) -> None:
    assert _made(FLIPPED.data, **changed).id != FLIPPED.id


@pytest.mark.parametrize("changed", [{"sequence": 9}, {"previous": 9}, {"time": PERSISTED.time}])
def test_place_and_time_do_not_change_the_id(changed: dict[str, Any]) -> None:
    assert _made(FLIPPED.data, **changed).id == FLIPPED.id


def _made(data: events.Position, **changed: Any) -> Event:
    fields: dict[str, Any] = {
        "kind": EventType.FLIPPED,
        "time": FLIPPED.time,
        "sequence": 2,
        "previous": 0,
        "record": "create/m-2/0",
    }
    return events.make(data, **(fields | changed))


def _found(schema: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = schema["$defs"][name]
    return found


def _check(value: Any, part: dict[str, Any], schema: dict[str, Any]) -> None:
    """The little of JSON Schema that the events' schema uses, by hand."""
    if "$ref" in part:
        _check(value, _found(schema, part["$ref"].rpartition("/")[2]), schema)
    if "enum" in part:
        assert value in part["enum"]
    if "required" in part:
        assert set(part["required"]) <= value.keys() <= part["properties"].keys()
        for name, inner in value.items():
            _check(inner, part["properties"][name], schema)
    if part.get("type") == "array":
        for inner in value:
            _check(inner, part["items"], schema)
    kinds = {"string": str, "number": float, "integer": int, "array": list, "object": dict}
    assert isinstance(value, kinds[part["type"]] if "type" in part else object)


@given(dialogues())
def test_the_schema_takes_every_event(records: list[Record]) -> None:
    schema: dict[str, Any] = events.schema()
    for outcome in play(records, ALL):
        for event in outcome.events:
            _check(json.loads(events.encode(event)), schema, schema)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("specversion", "0.3"),
        ("type", "volteface.stance.moved"),
        ("data.from", "maybe"),
        ("data.critic", "absent"),
        ("data.marks", ["new"]),
        ("data.policy", None),
        ("data", {}),
    ],
)
def test_the_schema_refuses_what_decoding_refuses(path: str, wrong: Any) -> None:
    schema: dict[str, Any] = events.schema()
    value = json.loads(events.encode(FLIPPED))
    *parents, name = path.split(".")
    (value[parents[0]] if parents else value)[name] = wrong
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(value, Event)
    with pytest.raises(AssertionError):
        _check(value, schema, schema)


def test_the_schema_says_what_is_always_there() -> None:
    schema: dict[str, Any] = events.schema()
    optional = {"emotion", "sentiment", "confidence", "trigger", "rationale", "evidence", "critic", "model"}
    optional |= {"turn"}  # a state is no turn's where a person's word decides
    assert set(_found(schema, "Event")["required"]) == EXAMPLE.keys()
    assert set(_found(schema, "Position")["required"]) == EXAMPLE["data"].keys() - optional
    assert _found(schema, "EventType")["enum"] == sorted(EventType)
