"""`--from` and what goes with it, through `volteface track`: detected, named, or asked for."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stream.cli.main import app
from stream.platforms import FORMS
from tests.stream.cli.test_track import events, track
from tests.stream.platforms.mutations import SAMPLES

PROPOSITION = ("--proposition", "whether the quay is closed")


def test_a_platforms_file_is_detected() -> None:
    done = track(str(SAMPLES / "telegram" / "chat.json"), *PROPOSITION)
    assert done.returncode == 0, done.stderr
    assert events(done) == [("2", "unknown", "support"), ("3", "unknown", "oppose")]


def test_a_form_is_named_and_a_document_is_read_from_standard_input() -> None:
    export = (SAMPLES / "matrix" / "export.json").read_bytes()
    done = track("-", "--from", "matrix", *PROPOSITION, given=export)
    assert done.returncode == 0, done.stderr
    kinds = [json.loads(line)["type"].rpartition(".")[2] for line in done.stdout.splitlines()]
    assert kinds == ["established", "retracted", "established"]  # and edited


def test_a_file_without_a_zone_is_read_as_utc_and_says_so_unless_told() -> None:
    file = str(SAMPLES / "whatsapp" / "android_de.txt")
    utc, berlin = track(file, *PROPOSITION), track(file, *PROPOSITION, "--zone", "Europe/Berlin")
    assert b"platforms.zone_assumed" in utc.stderr and b"--zone" in utc.stderr
    assert b"zone_assumed" not in berlin.stderr
    times = [json.loads(done.stdout.splitlines()[0])["time"][:16] for done in (utc, berlin)]
    assert times == ["2026-10-05T21:42", "2026-10-05T19:42"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "csv"], "no form 'csv'; one of native, benchmark, convokit, "),
        (["--zone", "Berlin"], "--zone: name of no time zone"),
        ([], "--dates dmy or --dates mdy"),
    ],
)
def test_what_must_be_said_is_a_line_and_no_traceback(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "chat.txt"
    path.write_text("05/06/2026, 21:41 - Ines: +1 yes\n")
    done = track(str(path), *PROPOSITION, *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(b"volteface track: ")
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["track", "replay"])
def test_help_names_the_forms(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "300", "TERM": "dumb"})
    words = " ".join(shown.stdout.split())
    assert shown.exit_code == 0
    assert all(form in words for form in FORMS)
    assert all(option in words for option in ("--from", "--zone", "--dates", "--conversation"))
