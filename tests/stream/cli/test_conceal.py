import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stream.fakes import target, turn
from tracker import records
from tracker.parsing import parse
from tracker.pseudonyms import pseudonym
from tracker.records import CreateTurn, DeclareTarget

ROOT = Path(__file__).parents[3]
KEY = bytes(range(32))


@pytest.fixture
def tenants(tmp_path: Path) -> Path:
    (tmp_path / "acme.key").write_bytes(base64.b64encode(KEY))
    path = tmp_path / "tenants.toml"
    path.write_text('[acme]\nprivacy = true\nkey_file = "acme.key"\n')
    return path


def conceal(tenants: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VOLTEFACE_")}
    return subprocess.run(
        [sys.executable, "-m", "stream.cli.main", "conceal", *arguments],
        cwd=ROOT, input=given, capture_output=True, timeout=60, check=False,
        env={**environment, "PYTHONPATH": str(ROOT), "VOLTEFACE_TENANTS": str(tenants)},
    )  # fmt: skip


def test_a_file_comes_back_without_names(tenants: Path) -> None:
    given = b"\n".join([records.encode(target()), records.encode(turn("1", display_name="Ann")), b"nonsense"])
    done = conceal(tenants, "-", "--tenant", "acme", given=given)
    declared, said = map(parse, done.stdout.splitlines())
    assert isinstance(declared, DeclareTarget)
    assert isinstance(said, CreateTurn)
    holder = pseudonym(KEY, "acme", "ann")
    assert (said.tenant, said.holder, said.display_name, said.text) == ("acme", holder, None, "+1")
    assert declared.tenant == "acme"
    assert (done.returncode, b"-:3: value" in done.stderr) == (1, True), done.stderr


def test_a_holder_is_told(tenants: Path) -> None:
    done = conceal(tenants, "--tenant", "acme", "--holder", "ann", "--holder", "bob")
    assert done.stdout.decode().split() == [pseudonym(KEY, "acme", name) for name in ("ann", "bob")]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["-"], 1, "tenant 'default' has no key"),
        (["--holder", "ann"], 1, "tenant 'default' has no key"),
        (["/nowhere"], 1, "No such file"),
        (["-", "--from", "nonsense", "--tenant", "acme"], 1, "no form 'nonsense'"),
        ([], 2, "name a file, or holders"),
        (["-", "--holder", "ann"], 2, "name a file, or holders"),
    ],
)
def test_what_cannot_be_done_is_said(tenants: Path, arguments: list[str], status: int, words: str) -> None:
    done = conceal(tenants, *arguments, given=records.encode(turn("1")))
    assert (done.returncode, words in done.stderr.decode()) == (status, True), done.stderr
    assert (b"Traceback" in done.stderr, done.stdout) == (False, b"")


def test_what_a_file_does_not_say_is_said(tenants: Path, tmp_path: Path) -> None:
    chat = tmp_path / "Chat with Ann.txt"
    chat.write_text(
        "01/10/2026, 20:14 - Ann: tea, always\n13/10/2026, 20:15 - Ben: coffee\n", encoding="utf-8"
    )
    done = conceal(tenants, str(chat), "--tenant", "acme", "--from", "whatsapp", "--conversation", "room-7")
    assert {parse(line).conversation for line in done.stdout.splitlines()} == {"room-7"}, done.stderr
    assert (len(done.stdout.splitlines()), b"Ann" in done.stdout) == (2, False)
