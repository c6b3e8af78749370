"""The benchmark's form: ids, times, replies and media by DESIGN.md, without labels too; the demo's rooms."""

import datetime as dt
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stream.cli
from stream.platforms import benchmark, open_records
from stream.platforms.lines import raw_lines
from tracker import keys
from tracker.records import CreateTurn, DeclareTarget, Media, Modality, Reason, Refused

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ROOMS = Path(stream.cli.__file__).parent / "rooms"
PROPOSITION = "The debate concerning whether the town should plant trees"


def turn(i: int, **fields: Any) -> dict[str, Any]:
    return {"i": i, "speaker": "Ada", "reply_to": None, "text": f"text {i}", "media": None} | fields


def dialogue(*turns: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "d-1", "language": "en", "proposition": PROPOSITION, "turns": list(turns)} | fields


def read(*dialogues: Any) -> list[tuple[int, Any]]:
    raw = b"\n".join(json.dumps(each).encode() for each in dialogues)
    return [(line.number, line.result) for line in benchmark.read(raw_lines(io.BytesIO(raw)))]


def test_a_dialogue_is_a_target_and_its_turns() -> None:
    media = {"modality": "meme", "description": "A dog at a table"}
    found = read(dialogue(turn(0), turn(1, speaker="Bo", reply_to=0, text="", media=media)))
    assert [number for number, _ in found] == [1, 1, 1]
    assert [result for _, result in found] == [
        DeclareTarget(
            conversation="d-1",
            sent_at=EPOCH,
            id="target/" + keys.target_id("default", "d-1", PROPOSITION),
            proposition=PROPOSITION,
        ),
        CreateTurn(conversation="d-1", sent_at=EPOCH, turn="0", holder="Ada", text="text 0", language="en"),
        CreateTurn(
            conversation="d-1",
            sent_at=EPOCH + dt.timedelta(seconds=1),
            turn="1",
            holder="Bo",
            text="",
            reply_to="0",
            language="en",
            media=(Media(Modality.MEME, description="A dog at a table"),),
        ),
    ]


def test_labels_are_not_read() -> None:
    labels = {"emotion": "joy", "stance": "support", "expressed": 5, "flip": "yes", "trigger_turns": None}
    assert read(dialogue(turn(0, **labels), split="test")) == read(dialogue(turn(0)))


def test_what_may_be_absent_may_be_absent() -> None:
    found = read({"id": "d", "proposition": "p", "turns": [{"i": 0, "speaker": "Ada", "text": "hello"}]})
    assert found[1][1].language is None
    assert found[1][1].reply_to is None


@pytest.mark.parametrize(
    ("wrong", "reason", "field"),
    [
        ({"id": "d", "turns": []}, Reason.MISSING_FIELD, "proposition"),
        (dialogue(turn(0), {"i": 1, "speaker": "Ada"}), Reason.MISSING_FIELD, "turns[1].text"),
        (dialogue(turn(0, media={"modality": "gif"})), Reason.INVALID_VALUE, "turns[0].media.modality"),
        (dialogue(turn(0, reply_to=-1)), Reason.INVALID_VALUE, "turns[0].reply_to"),
        (dialogue(turn(0), id=""), Reason.INVALID_VALUE, "id"),
        (dialogue(turn(0), proposition="p" * 1025), Reason.TOO_LONG, "proposition"),
        ([], Reason.NOT_AN_OBJECT, "value"),
    ],
)
def test_a_dialogue_that_is_refused_is_one_line(wrong: Any, reason: Reason, field: str) -> None:
    found = read(wrong, dialogue(turn(0)))
    assert [number for number, _ in found] == [1, 2, 2]
    assert (found[0][1].reason, found[0][1].field) == (reason, field)


@pytest.mark.parametrize(
    ("wrong", "reason", "field"),
    [
        (turn(1, text=""), Reason.EMPTY_TEXT, "turns[1].text"),
        (turn(1, text="x" * 16_385), Reason.TOO_LONG, "turns[1].text"),
        (turn(1, speaker="x" * 513), Reason.TOO_LONG, "turns[1].speaker"),
        (turn(0), Reason.INVALID_VALUE, "turns[1].i"),
        (turn(7), Reason.INVALID_VALUE, "turns[1].i"),
    ],
)
def test_a_turn_that_is_refused_leaves_the_others(wrong: Any, reason: Reason, field: str) -> None:
    found = [result for _, result in read(dialogue(turn(0), wrong, turn(2)))]
    assert (found[2].reason, found[2].field) == (reason, field)
    assert found[3].turn == "2"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for line in benchmark.read(raw_lines(io.BytesIO(raw))):
        assert isinstance(line.result, Refused)


@pytest.mark.parametrize("name", ["en", "zh", "es", "rule"])
def test_a_room_of_the_demo_is_one_dialogue_without_refusals(name: str) -> None:
    results = [line.result for line in open_records(ROOMS / f"{name}.jsonl")]
    assert isinstance(results[0], DeclareTarget)
    turns = [result for result in results[1:] if isinstance(result, CreateTurn)]
    assert len(turns) == len(results) - 1
    assert 8 <= len(turns) <= 12
    assert 2 <= len({each.holder for each in turns}) <= 4
    assert any(each.media for each in turns)


@pytest.mark.parametrize("name", ["en", "zh", "es"])
def test_a_labelled_room_holds_a_flip_and_was_never_trained_on(name: str) -> None:
    room = json.loads((ROOMS / f"{name}.jsonl").read_text(encoding="utf-8"))
    assert (room["split"], room["language"]) == ("test", name)
    assert any(each["flip"] for each in room["turns"])


def test_the_rule_room_speaks_the_rule_engines_form_without_labels() -> None:
    room = json.loads((ROOMS / "rule.jsonl").read_text(encoding="utf-8"))
    texts = [each["text"] for each in room["turns"]]
    assert {text[:2] for text in texts if text[0] in "+-"} == {"+1", "-1", "+0"}
    assert not any("stance" in each or "expressed" in each for each in room["turns"])
