"""`volteface keys`: made once, listed without themselves, revoked; and a gateway that takes them."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stream.accounts import secrets
from stream.cli.keys import app
from stream.database.upgrading import upgrade
from stream.options import SettingsError

runner = CliRunner()


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path}/volteface.db"
    monkeypatch.setenv("VOLTEFACE_DATABASE", url)
    return url


@pytest.fixture
def made(database: str) -> str:
    asyncio.run(upgrade(database))
    return database


@pytest.mark.usefixtures("made")
def test_a_key_is_shown_once_and_listed_without_itself() -> None:
    done = runner.invoke(app, ["create", "mia", "--tenant", "acme", "--scope", "admin"])
    assert done.exit_code == 0, done.output
    text = done.stdout.strip()
    assert secrets.id_of(text)
    shown = runner.invoke(app, ["list", "--json"]).stdout
    row = json.loads(shown)
    assert (row["id"], row["principal"], row["tenant"]) == (secrets.id_of(text), "mia", "acme")
    assert row["scopes"] == ["admin"] and row["revoked_at"] is None
    assert text not in shown and "digest" not in row
    assert runner.invoke(app, ["list", "--json", "--tenant", "other"]).stdout == ""
    assert row["id"] in runner.invoke(app, ["list"]).stdout


@pytest.mark.usefixtures("made")
def test_a_key_is_revoked_once() -> None:
    ident = str(secrets.id_of(runner.invoke(app, ["create", "mia"]).stdout.strip()))
    assert runner.invoke(app, ["revoke", ident]).exit_code == 0
    assert json.loads(runner.invoke(app, ["list", "--json"]).stdout)["revoked_at"]
    again = runner.invoke(app, ["revoke", ident])
    assert again.exit_code == 1 and "volteface keys list" in again.stderr


@pytest.mark.usefixtures("database")
def test_a_database_without_tables_is_one_line_with_the_remedy() -> None:
    done = runner.invoke(app, ["list"])
    assert done.exit_code == 1 and "volteface database upgrade" in done.stderr


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("given", [[""], ["x" * 201], ["mia", "--scope", "all"], ["mia", "--tenant", ""]])
def test_what_is_no_name_or_scope_is_refused(given: list[str]) -> None:
    assert runner.invoke(app, ["create", *given]).exit_code == 2


def test_without_a_database_the_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOLTEFACE_DATABASE", raising=False)
    done = runner.invoke(app, ["list"])
    assert isinstance(done.exception, SettingsError) and "VOLTEFACE_DATABASE" in str(done.exception)
