"""Detection: by a file's beginning, without losing it, from files and from standard input."""

import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream.platforms import FORMS, Line, Sayings, UnknownForm, detect, detection, open_records
from stream.platforms.forms import Form
from stream.platforms.lines import Resumed
from tests.stream.platforms.test_lines import Endless
from tracker.records import CreateTurn, DeclareTarget, Reason, Refused

SAMPLES = {
    "native": '{"conversation":"c","sent_at":"2026-11-29T20:14:05Z","turn":"1","holder":"u","text":"hi"}',
    "benchmark": '{"id": "d", "proposition": "p", "turns": [{"i": 0, "speaker": "Ada", "text": "hi"}]}',
    "convokit": '{"id": "1", "speaker": "ada", "conversation_id": "c", "text": "hi", "timestamp": null}',
    "matrix": '{"type": "m.room.message", "room_id": "!r:e", "event_id": "$1", "sender": "@a:e", '
    '"origin_server_ts": 1, "content": {"msgtype": "m.text", "body": "hi"}}',
    "telegram": '{"name": "c", "type": "private_group", "id": 5, "messages": [{"id": 1, "type": "message", '
    '"date_unixtime": "1", "from_id": "user1", "text": "hi"}]}',
    "whatsapp": "13/10/2026, 21:41 - Ines: hi",
    "youtube": '{"kind": "youtube#liveChatMessage", "id": "1", "snippet": {"type": "textMessageEvent", '
    '"liveChatId": "c", "authorChannelId": "u", "publishedAt": "2026-11-29T20:14:05Z", '
    '"displayMessage": "hi"}}',
}
SAMPLES |= {
    "slack": '{"team_id": "T1", "event_id": "E1", "event": {"type": "message", "channel": "C1", '
    '"user": "U1", "ts": "1790841660.000100", "text": "hi"}}',
    "discord": '{"op": 0, "s": 1, "t": "MESSAGE_CREATE", "d": {"id": "1", "channel_id": "2", "type": 0, '
    '"author": {"id": "3", "username": "ada"}, "content": "hi", "timestamp": "2026-11-29T20:14:05Z"}}',
    "twitch-irc": "@id=1;room-id=2;user-id=3;display-name=Ada;tmi-sent-ts=1790841660000 "
    ":ada!ada@ada.tmi.twitch.tv PRIVMSG #quay :hi",
    "twitch-eventsub": '{"metadata": {"message_id": "1", "message_type": "notification", '
    '"message_timestamp": "2026-11-29T20:14:05Z"}, "payload": {"subscription": '
    '{"type": "channel.chat.message", "version": "1"}, '
    '"event": {"broadcaster_user_id": "1", "chatter_user_id": "2", "chatter_user_login": "ada", '
    '"chatter_user_name": "Ada", "message_id": "m", "message": {"text": "hi", "fragments": []}}}}',
}
KINDS = {"benchmark": [DeclareTarget, CreateTurn]}
MANY_LINES = [name for name, form in FORMS.items() if form.document and name != "whatsapp"]


@pytest.mark.parametrize("form", SAMPLES)
@pytest.mark.parametrize(
    "before", ["", "\n \r\n", "\ufeff", "\ufeff\r\n"], ids=["bare", "blank", "bom", "both"]
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_every_form_is_known_by_its_first_line(form: str, before: str, packed: bool, tmp_path: Path) -> None:
    raw = (before + SAMPLES[form] + "\r\n").encode()
    path = tmp_path / ("file.jsonl.gz" if packed else "file.jsonl")
    path.write_bytes(gzip.compress(raw) if packed else raw)
    assert detect(path) == form
    assert [type(line.result) for line in open_records(path)] == KINDS.get(form, [CreateTurn])


@pytest.mark.parametrize("form", MANY_LINES)
def test_a_document_is_known_by_its_first_fields(form: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b"\n" + json.dumps(json.loads(SAMPLES[form]), indent=1).encode())
    assert detect(path) == form


def test_a_document_is_known_before_it_ends() -> None:
    row = b'{"id": 1, "type": "message", "date_unixtime": "1", "from_id": "user1", "text": "hi"},\n'
    head = b'{\n "name": "c",\n "type": "private_group",\n "id": 5,\n "messages": [\n'
    for opening in (head, head.replace(b"\n", b"")):
        rows = Endless(row)
        endless = io.BufferedReader(rows, 1 << 12)  # type: ignore[type-var]
        whole = io.BufferedReader(Resumed(opening, endless), 1 << 12)  # type: ignore[arg-type]
        lines = open_records(whole)  # type: ignore[arg-type]
        assert [type(next(lines).result) for _ in range(10)] == [CreateTurn] * 10
        assert rows.read_bytes < 1_000_000


def test_a_line_is_handed_on_before_the_next_is_there() -> None:
    """As from a pipe: whoever sends waits for what the first line gives."""
    pipe = Waiting([SAMPLES["native"].encode() + b"\n"])
    lines = open_records(io.BufferedReader(pipe))  # type: ignore[arg-type]
    assert isinstance(next(lines).result, CreateTurn)
    with pytest.raises(TooEarly):
        next(lines)


class TooEarly(Exception):
    """More was asked for than is there."""


class Waiting(io.RawIOBase):
    """A pipe that has these pieces, and nothing more yet."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        if not self._pieces:
            raise TooEarly
        piece = self._pieces.pop(0)
        buffer[: len(piece)] = piece
        return len(piece)


def test_a_form_may_be_read_from_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path, said: Sayings) -> Iterator[Line]:
        assert said.file == path.name
        yield from (
            Line(number, Refused(Reason.FAILED, "x", "y", "z")) for number, _ in enumerate(path.iterdir())
        )

    folders = Form("folders", lambda sample: sample.path is not None and sample.path.is_dir(), path=read)
    monkeypatch.setattr(detection, "_ALL", (folders, *detection._ALL))
    monkeypatch.setattr(detection, "FORMS", {**FORMS, "folders": folders})
    (tmp_path / "a").touch()
    assert detect(tmp_path) == "folders"
    assert [line.number for line in open_records(tmp_path)] == [0]
    assert [line.number for line in open_records(tmp_path, "folders")] == [0]
    with pytest.raises(UnknownForm, match="from a path"):
        next(open_records(io.BytesIO(b"{}"), "folders"))


def test_slacks_export_is_known_by_its_folder_and_its_zip(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    (folder / "general").mkdir(parents=True)
    row = {"type": "message", "user": "U1", "ts": "1790841660.000100", "text": "hi"}
    files = {
        "channels.json": [{"id": "C1", "name": "general"}],
        "users.json": [],
        "general/2026-10-01.json": [row],
    }
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as packed:
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content))
            packed.writestr(name, json.dumps(content))
    for path in (folder, tmp_path / "export.zip"):
        assert detect(path) == "slack-export"
        assert [type(line.result) for line in open_records(path)] == [CreateTurn]
    with pytest.raises(UnknownForm, match="from a path"):
        next(open_records(io.BytesIO((tmp_path / "export.zip").read_bytes()), "slack-export"))


def test_every_form_has_a_sample() -> None:
    assert {*SAMPLES, "slack-export"} == FORMS.keys()


def test_a_folder_that_no_form_reads_is_an_os_error(tmp_path: Path) -> None:
    assert detect(tmp_path) == "native"
    with pytest.raises(IsADirectoryError):
        next(open_records(tmp_path))


def test_what_is_said_of_a_file_reaches_its_reader() -> None:
    (line,) = open_records(io.BytesIO(SAMPLES["whatsapp"].encode()), said=Sayings(conversation="quay"))
    assert isinstance(line.result, CreateTurn)
    assert line.result.conversation == "quay"


@pytest.mark.parametrize(
    ("first", "form"),
    [
        ('{"op": "clear"}', "native"),
        ('{"conversation": "c", "speaker": "ada"}', "native"),
        ('{"user": "ada", "root": "c"}', "convokit"),
        ('{"turns": []}', "benchmark"),
        ('{"turns": [], "events": []}', "benchmark"),
        ('{"conversation": "c", "events": [], "kind": "youtube#liveChatMessage"}', "native"),
        ('{"next_batch": "s", "rooms": {}}', "matrix"),
        ('{"chunk": [], "start": "a", "end": "b"}', "matrix"),
        ('{"events": []}', "matrix"),
        ('{"kind": "youtube#liveChatMessageListResponse", "items": []}', "youtube"),
        ('[{"kind": "youtube#liveChatMessage", "id": "1"}]', "youtube"),
        ('{"about": "...", "chats": {}}', "telegram"),
        ('{"about": "...", "personal_information": {"id": 1}}', "telegram"),
        ("\u200e[13/10/2026, 21:41:05] Ines: hi", "whatsapp"),
        ("[]", "native"),
        ("{", "native"),
        ("\ud800", "native"),
        ("", "native"),
        ('{"a": ' + "[" * 100_000, "native"),
        ("x" * 2_000_000, "native"),
    ],
)
def test_what_no_form_knows_is_native(first: str, form: str) -> None:
    assert detect(io.BytesIO(first.encode("utf-8", "surrogatepass"))) == form


def test_the_first_line_of_standard_input_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "\n".join([SAMPLES["benchmark"], SAMPLES["benchmark"]])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert [line.number for line in open_records("-")] == [1, 1, 2, 2]


def test_a_form_that_is_asked_for_is_not_guessed() -> None:
    (line,) = open_records(io.BytesIO(SAMPLES["convokit"].encode()), "native")
    assert isinstance(line.result, Refused)
    assert (line.result.reason, line.result.field) == (Reason.MISSING_FIELD, "conversation")


def test_an_unknown_form_is_refused_at_once() -> None:
    with pytest.raises(UnknownForm, match="one of native, benchmark, convokit"):
        open_records("-", "csv")


@pytest.mark.parametrize("form", [None, "native", "benchmark", "convokit", "matrix", "youtube", "whatsapp"])
def test_an_empty_file_has_no_records(form: str | None) -> None:
    assert list(open_records(io.BytesIO(b""), form, Sayings(conversation="c"))) == []


def test_an_empty_file_is_no_document() -> None:
    (line,) = open_records(io.BytesIO(b""), "telegram")
    assert isinstance(line.result, Refused)
    assert line.result.reason == Reason.NOT_JSON


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(open_records(tmp_path / "missing"))


def test_a_file_is_closed_when_its_reader_stops_early(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(SAMPLES["native"] + "\n" + SAMPLES["native"])
    lines = open_records(path)
    assert next(lines).number == 1
    lines.close()  # type: ignore[attr-defined]
    assert next(lines, None) is None
