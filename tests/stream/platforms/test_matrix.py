"""Matrix: the same events through several APIs, edits and redactions, threads, and bad events."""

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream.platforms import Line, matrix, open_records
from stream.platforms.lines import raw_lines
from stream.platforms.sayings import UNSAID, Sayings
from tests.stream.platforms.mutations import SAMPLES, changed_bytes, changed_json, encoded, sound
from tracker.records import (
    CreateTurn,
    DeleteTurn,
    EditTurn,
    HolderKind,
    Media,
    Modality,
    Reason,
    Refused,
    record_id,
    revision_of,
)

SYNC, EXPORT = SAMPLES / "matrix" / "sync.jsonl", SAMPLES / "matrix" / "export.json"
ROOM = "!quay:example.org"
TEXT = {"msgtype": "m.text", "body": "hello"}
EDIT_OF_NOTHING = {"m.relates_to": {"rel_type": "m.replace"}}


def event(number: int, content: Any = TEXT, **fields: Any) -> dict[str, Any]:
    whole = {
        "type": "m.room.message",
        "room_id": ROOM,
        "sender": "@ada:example.org",
        "event_id": f"${number}",
        "origin_server_ts": 1_790_841_600_000 + number * 1000,
        "content": content,
        **fields,
    }
    return {key: value for key, value in whole.items() if value is not ...}


def edit(number: int, of: int, text: str = "better", **fields: Any) -> dict[str, Any]:
    new = {"msgtype": "m.text", "body": text}
    relation = {"rel_type": "m.replace", "event_id": f"${of}"}
    return event(
        number, {**new, "body": f"* {text}", "m.new_content": new, "m.relates_to": relation}, **fields
    )


def redaction(number: int, of: int, **fields: Any) -> dict[str, Any]:
    return event(number, {}, type="m.room.redaction", redacts=f"${of}", **fields)


def lines(*rows: Any, said: Sayings = UNSAID) -> list[Line]:
    return list(matrix.read(raw_lines(io.BytesIO(b"\n".join(map(encoded, rows)))), said))


def read(*rows: Any, said: Sayings = UNSAID) -> list[Any]:
    return [line.result for line in lines(*rows, said=said)]


def test_sync_a_transaction_and_single_events() -> None:
    found = [(line.number, type(line.result).__name__) for line in open_records(SYNC)]
    assert found == [
        (1, "CreateTurn"), (1, "CreateTurn"), (1, "CreateTurn"), (2, "EditTurn"), (3, "CreateTurn"),
        (4, "Refused"), (5, "DeleteTurn"), (6, "DeleteTurn"), (7, "CreateTurn"), (8, "CreateTurn"),
    ]  # fmt: skip


def test_the_surrounding_object_names_the_room() -> None:
    first = next(open_records(SYNC)).result
    assert isinstance(first, CreateTurn)
    assert (first.conversation, first.turn, first.holder) == (ROOM, "$1", "@ada:example.org")


def test_an_event_that_names_no_room() -> None:
    (refused,) = read(event(1, room_id=...))
    assert (refused.field, "--conversation" in refused.remedy) == ("room_id", True)
    assert read(event(1, room_id=...), said=Sayings(conversation="quay"))[0].conversation == "quay"


def test_the_same_event_twice_is_one_turn() -> None:
    transaction, page = {"events": [event(1)]}, {"chunk": [event(1)], "start": "a", "end": "b"}
    (turn,) = read(event(1), transaction, page)
    assert record_id(turn) == record_id(read(transaction)[0])


def test_a_page_that_goes_backwards_is_turned_round() -> None:
    page = {"start": "a", "chunk": [edit(3, 1), event(2), event(1)]}
    assert [result.turn for result in read(page)] == ["$1", "$2", "$1"]


def test_an_edit_takes_its_new_content_and_its_time_is_the_revision() -> None:
    turn, edited = read(event(1), edit(5, 1))
    assert isinstance(edited, EditTurn)
    assert (edited.turn, edited.text) == (turn.turn, "better")
    assert revision_of(edited) == event(5)["origin_server_ts"]


def test_edits_of_one_moment_are_two() -> None:
    first, second = read(
        event(1), edit(2, 1, "a"), edit(3, 1, "b", origin_server_ts=event(2)["origin_server_ts"])
    )[1:]
    assert record_id(first) != record_id(second)


def test_another_persons_edit_is_ignored() -> None:
    assert len(read(event(1), edit(2, 1, sender="@eve:example.org"))) == 1


def test_an_edit_of_an_edit_is_ignored() -> None:
    assert len(read(event(1), edit(2, 1), edit(3, 2))) == 2


def test_an_edit_in_another_room_is_none() -> None:
    assert isinstance(read(event(1), edit(2, 1, room_id="!other:example.org"))[-1], Refused)


def test_an_edit_of_an_old_client_has_only_its_fallback() -> None:
    content = {
        "msgtype": "m.text",
        "body": "* better",
        "m.relates_to": {"rel_type": "m.replace", "event_id": "$1"},
    }
    assert read(event(1), event(2, content))[1].text == "better"


def test_an_edit_that_comes_early_waits_for_its_original() -> None:
    results = read(edit(3, 1, "of ada"), edit(4, 1, "of eve", sender="@eve:example.org"), event(1))
    assert [(type(result), result.text) for result in results] == [
        (CreateTurn, "hello"),
        (EditTurn, "of ada"),
    ]


def test_an_edit_whose_original_never_comes_is_told() -> None:
    turn, refused = lines(edit(3, 1), event(2))
    assert isinstance(turn.result, CreateTurn) and isinstance(refused.result, Refused)
    assert (refused.number, refused.result.field) == (2, "content.m.relates_to.event_id")


def test_redactions_of_both_room_versions() -> None:
    older, newer = read(redaction(2, 1), event(3, {"redacts": "$1"}, type="m.room.redaction"))
    assert (older.turn, newer.turn) == ("$1", "$1")
    assert record_id(older) == record_id(newer)


def test_a_redaction_takes_back_waiting_edits() -> None:
    results = read(edit(3, 1), redaction(4, 1), event(1))
    assert [type(result) for result in results] == [DeleteTurn, CreateTurn]


def test_a_redacted_event_is_no_turn() -> None:
    assert read(event(1, {}, unsigned={"redacted_because": redaction(2, 1)})) == []


def test_the_redaction_of_an_edit_is_told() -> None:
    refused = read(event(1), edit(2, 1), redaction(3, 2))[-1]
    assert (refused.reason, refused.field) == (Reason.INVALID_VALUE, "redacts")


def test_a_thread_is_a_conversation_of_its_own_for_its_corrections_too() -> None:
    relation = {
        "rel_type": "m.thread",
        "event_id": "$1",
        "is_falling_back": True,
        "m.in_reply_to": {"event_id": "$1"},
    }
    root, turn, edited, gone = read(
        event(1), event(2, TEXT | {"m.relates_to": relation}), edit(3, 2), redaction(4, 2)
    )
    assert root.conversation == ROOM
    assert {turn.conversation, edited.conversation, gone.conversation} == {f"{ROOM}/$1"}
    assert turn.reply_to is None  # the reply is a fallback for clients without threads
    (reply,) = read(event(2, TEXT | {"m.relates_to": relation | {"is_falling_back": False}}))
    assert reply.reply_to == "$1"


def test_a_notice_is_a_bots_and_a_servers_is_nobodys() -> None:
    bot = read(
        event(1, {"msgtype": "m.notice", "body": "tide"}),
        event(2, {"msgtype": "m.server_notice", "body": "x"}),
    )
    assert [turn.holder_kind for turn in bot] == [HolderKind.BOT]


def test_an_encrypted_event_is_told_as_having_no_text() -> None:
    (refused,) = read(
        event(1, {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "A"}, type="m.room.encrypted")
    )
    assert (refused.reason, "keys" in refused.remedy) == (Reason.EMPTY_TEXT, True)


@pytest.mark.parametrize(
    "kind", ["m.room.member", "m.room.name", "m.reaction", "m.room.topic", "org.example.own"]
)
def test_other_events_are_no_turns(kind: str) -> None:
    assert read(event(1, {"body": 7}, type=kind)) == []
    assert read(event(1, state_key="")) == []


def test_an_export_is_a_document_with_bundled_edits() -> None:
    found = [(line.number, type(line.result)) for line in open_records(EXPORT)]
    assert found == [(1, CreateTurn), (1, EditTurn)]


def test_an_answer_over_many_lines_is_the_same() -> None:
    rows = [json.loads(line) for line in SYNC.read_text().splitlines()]
    for answer in rows[:2]:
        raw = json.dumps(answer, indent=1).encode()
        assert [str(line.result) for line in open_records(io.BytesIO(raw))] == list(map(str, read(answer)))


@pytest.mark.parametrize(
    ("bad", "reason", "field"),
    [
        (event(1, sender=...), Reason.MISSING_FIELD, "sender"),
        (event(1, event_id=7), Reason.WRONG_TYPE, "event_id"),
        (event(1, origin_server_ts="x"), Reason.WRONG_TYPE, "origin_server_ts"),
        (event(1, origin_server_ts=10**18), Reason.INVALID_VALUE, "origin_server_ts"),
        (event(1, origin_server_ts=-(10**17)), Reason.INVALID_VALUE, "origin_server_ts"),
        (event(1, []), Reason.WRONG_TYPE, "content"),
        (event(1, {"msgtype": "m.text"}), Reason.EMPTY_TEXT, "content.body"),
        (event(1, {"msgtype": "m.file", "body": "a.pdf"}), Reason.EMPTY_TEXT, "content.body"),
        (event(1, {"msgtype": "m.text", "body": "é" * 9000}), Reason.TOO_LONG, "content.body"),
        (event(1, TEXT | EDIT_OF_NOTHING), Reason.MISSING_FIELD, "content.m.relates_to.event_id"),
        (event(1, TEXT | {"m.relates_to": "x"}), Reason.WRONG_TYPE, "content.m.relates_to"),
        (event(1, {}, type="m.room.redaction"), Reason.MISSING_FIELD, "redacts"),
        ({"type": 7}, Reason.WRONG_TYPE, "type"),
        ([], Reason.NOT_AN_OBJECT, "value"),
    ],
)  # fmt: skip
def test_bad_events_are_refused_by_field_and_the_next_is_read(bad: Any, reason: Reason, field: str) -> None:
    first, second = read(bad, event(9))
    assert (first.reason, first.field) == (reason, field)
    assert isinstance(second, CreateTurn)


def test_media_of_files() -> None:
    content = {"msgtype": "m.file", "body": "look", "filename": "a.png", "info": {"mimetype": "image/png"}}
    (turn,) = read(event(1, content | {"file": {"url": "mxc://example.org/a"}}))
    media = Media(modality=Modality.IMAGE, uri="mxc://example.org/a", mime="image/png")
    assert (turn.text, turn.media) == ("look", (media,))


@settings(deadline=None)  # a busy machine is no fault
@given(changed_bytes(SYNC.read_bytes()))
def test_no_bytes_break_it(raw: bytes) -> None:
    sound(list(matrix.read(raw_lines(io.BytesIO(raw)))))


@settings(deadline=None)  # a busy machine is no fault
@given(changed_bytes(EXPORT.read_bytes()))
def test_no_bytes_break_a_document(raw: bytes) -> None:
    sound(list(matrix.read_document(io.BytesIO(raw))))


@settings(deadline=None)  # a busy machine is no fault
@given(st.data())
def test_no_values_break_it(data: st.DataObject) -> None:
    rows = [json.loads(line) for line in SYNC.read_text().splitlines()]
    changed = data.draw(changed_json(rows))
    sound(lines(*changed))
    export = data.draw(changed_json(json.loads(EXPORT.read_text())))
    sound(list(matrix.read_document(io.BytesIO(encoded(export)))))
