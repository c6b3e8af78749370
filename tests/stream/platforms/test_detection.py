"""Detection: by the first line that is not blank, without losing it, from files and from standard input."""

import gzip
import io
from pathlib import Path

import pytest

from stream.platforms import FORMS, UnknownForm, detect, open_records
from tracker.records import CreateTurn, DeclareTarget, Reason, Refused

SAMPLES = {
    "native": '{"conversation":"c","sent_at":"2026-11-29T20:14:05Z","turn":"1","holder":"u","text":"hi"}',
    "benchmark": '{"id": "d", "proposition": "p", "turns": [{"i": 0, "speaker": "Ada", "text": "hi"}]}',
    "convokit": '{"id": "1", "speaker": "ada", "conversation_id": "c", "text": "hi", "timestamp": null}',
}
KINDS = {"native": [CreateTurn], "benchmark": [DeclareTarget, CreateTurn], "convokit": [CreateTurn]}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "before", ["", "\n \r\n", "\ufeff", "\ufeff\r\n"], ids=["bare", "blank", "bom", "both"]
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_every_form_is_known_by_its_first_line(form: str, before: str, packed: bool, tmp_path: Path) -> None:
    raw = (before + SAMPLES[form] + "\r\n").encode()
    path = tmp_path / ("file.jsonl.gz" if packed else "file.jsonl")
    path.write_bytes(gzip.compress(raw) if packed else raw)
    assert detect(path) == form
    assert [type(line.result) for line in open_records(path)] == KINDS[form]


@pytest.mark.parametrize(
    ("first", "form"),
    [
        ('{"op": "clear"}', "native"),
        ('{"conversation": "c", "speaker": "ada"}', "native"),
        ('{"user": "ada", "root": "c"}', "convokit"),
        ('{"turns": []}', "benchmark"),
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


@pytest.mark.parametrize("form", [None, *FORMS])
def test_an_empty_file_has_no_records(form: str | None) -> None:
    assert list(open_records(io.BytesIO(b""), form)) == []


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
