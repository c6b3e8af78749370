"""Slack's workspace export: channels, people, threads over days, logs of edits, and broken files."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream.platforms import Line, slack_export
from tests.stream.platforms.mutations import SAMPLES, changed_bytes, changed_json, encoded
from tests.stream.platforms.round_trips import taken
from tracker.records import CreateTurn, DeleteTurn, EditTurn, HolderKind, Reason, Refused

EXPORT = SAMPLES / "slack_export"
DAY = EXPORT / "quay" / "2026-10-02.json"


def as_folder(tmp_path: Path) -> Path:
    return EXPORT


def as_zip(tmp_path: Path) -> Path:
    return Path(shutil.make_archive(str(tmp_path / "export"), "zip", EXPORT))


def within(tmp_path: Path) -> Path:
    """As people zip a folder by hand."""
    return Path(shutil.make_archive(str(tmp_path / "export"), "zip", EXPORT.parent, EXPORT.name))


def read(path: Path) -> list[Line]:
    return list(slack_export.read_path(path))


def copied(tmp_path: Path, name: str, content: bytes) -> Path:
    folder = tmp_path / "export"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(EXPORT, folder)
    (folder / name).write_bytes(content)
    return folder


def turns(lines: list[Line]) -> list[CreateTurn]:
    return [line.result for line in lines if isinstance(line.result, CreateTurn)]


@pytest.mark.parametrize("made", [as_folder, as_zip, within])
def test_every_form_of_it_is_the_same(made: Callable[[Path], Path], tmp_path: Path) -> None:
    path = made(tmp_path)
    assert slack_export.recognises(path)
    assert [(line.number, type(line.result)) for line in read(path)] == [
        (1, CreateTurn), (3, CreateTurn), (4, CreateTurn), (5, CreateTurn), (6, EditTurn), (7, DeleteTurn),
        (8, Refused),
    ]  # fmt: skip


def test_channels_have_their_ids_and_threads_go_on_the_next_day() -> None:
    conversations = [turn.conversation for turn in turns(read(EXPORT))]
    assert conversations == ["D01", "C01", "C01", "C01/1790841600.000100"]


def test_people_have_their_names() -> None:
    _, ada, bot, mara = turns(read(EXPORT))
    assert (ada.display_name, ada.text) == ("Ada", "+1 the bridge, @Mara Pier")
    assert (bot.display_name, bot.holder_kind) == ("Tide", HolderKind.BOT)
    assert (mara.display_name, mara.holder_kind) == ("Mara Pier", HolderKind.USER)


def test_an_edited_message_is_its_last_text_at_its_own_time() -> None:
    ada = turns(read(EXPORT))[1]
    assert (ada.turn, ada.revision, ada.sent_at.second) == ("1790841600.000100", 0, 0)


def test_logs_of_edits_and_deletions() -> None:
    edit, gone = (line.result for line in read(EXPORT) if line.number in (6, 7))
    assert isinstance(edit, EditTurn) and isinstance(gone, DeleteTurn)
    assert (edit.conversation, edit.text) == ("C01/1790841600.000100", "+0 perhaps")
    assert (gone.conversation, gone.turn) == ("C01", "1790841600.000100")


def test_a_bots_account_is_a_bot_without_a_bot_id(tmp_path: Path) -> None:
    row = [{"type": "message", "user": "U09", "ts": "1790841650.000600", "text": "High tide"}]
    folder = copied(tmp_path, "quay/2026-10-01.json", encoded(row))
    assert [turn.holder_kind for turn in turns(read(folder)) if turn.holder == "U09"] == [HolderKind.BOT]


def test_a_broken_day_is_told_and_the_next_is_read(tmp_path: Path) -> None:
    lines = read(copied(tmp_path, "quay/2026-10-01.json", b'[{"type": "message", '))
    refused = [line.result for line in lines if isinstance(line.result, Refused)]
    assert (refused[0].reason, refused[0].field) == (Reason.NOT_JSON, "quay/2026-10-01.json")
    assert any(turn.text == "-1 never" for turn in turns(lines))


def test_a_broken_list_costs_names_alone(tmp_path: Path) -> None:
    lines = read(copied(tmp_path, "channels.json", b'[{"id": 7}, {"id": "C01", "name": "quay"}]'))
    assert [(line.number, line.result.field) for line in lines[:1] if isinstance(line.result, Refused)] == [
        (1, "id")
    ]
    assert {turn.conversation for turn in turns(lines)} == {"D01", "C01", "C01/1790841600.000100"}
    assert {turn.conversation for turn in turns(read(copied(tmp_path, "channels.json", b"{")))} == {
        "D01", "quay", "quay/1790841600.000100",
    }  # fmt: skip
    assert turns(read(copied(tmp_path, "users.json", b"[]")))[1].display_name is None


def test_other_paths_are_no_export(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}")
    assert not slack_export.recognises(tmp_path)
    assert not slack_export.recognises(tmp_path / "a.jsonl")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.data())
def test_no_bytes_and_no_values_break_it(tmp_path: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["channels.json", "users.json", "quay/2026-10-02.json"]))
    raw = (EXPORT / name).read_bytes()
    value: Any = json.loads(raw)
    taken(read(copied(tmp_path, name, data.draw(changed_bytes(raw)))))
    taken(read(copied(tmp_path, name, encoded(data.draw(changed_json(value))))))
