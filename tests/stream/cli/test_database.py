"""`volteface database` and `volteface views` as processes see them: their words and their status."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stream.cli import database, views
from stream.embedded import EmbeddedBroker
from stream.embedded.process import free_port
from stream.options import SettingsError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CliRunner:
    monkeypatch.setenv("VOLTEFACE_DATABASE", f"sqlite:///{tmp_path}/a.db")
    return CliRunner()


def test_upgrade_says_from_where_to_where(runner: CliRunner) -> None:
    first, second = runner.invoke(database.app, ["upgrade"]), runner.invoke(database.app, ["upgrade"])
    assert first.exit_code == second.exit_code == 0
    assert "from nothing to " in first.output and "already" in second.output


def test_upgrade_needs_an_address(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOLTEFACE_DATABASE")
    assert isinstance(runner.invoke(database.app, ["upgrade"]).exception, SettingsError)


def test_upgrade_of_a_database_that_is_away(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOLTEFACE_DATABASE", f"postgresql://u@127.0.0.1:{free_port()}/d")
    found = runner.invoke(database.app, ["upgrade"])
    assert found.exit_code == 1
    assert found.output.startswith("volteface database upgrade: ")


def test_views_need_the_tables(runner: CliRunner) -> None:
    for command in ("run", "rebuild"):
        found = runner.invoke(views.app, [command])
        assert found.exit_code == 1
        assert "volteface database upgrade" in found.output


async def test_views_run_until_told_and_are_rebuilt(
    tansu_broker: EmbeddedBroker, topic_prefix: str, tmp_path: Path
) -> None:
    environment = os.environ | {
        "VOLTEFACE_BROKER": tansu_broker.url,
        "VOLTEFACE_TOPIC_PREFIX": topic_prefix,
        "VOLTEFACE_DATABASE": f"sqlite:///{tmp_path}/a.db",
        "VOLTEFACE_REBALANCE_SECONDS": "2",
        "VOLTEFACE_BATCH_SECONDS": "0.9",
    }

    async def command(module: str, word: str) -> asyncio.subprocess.Process:
        code = f"from stream.cli.{module} import app; app([{word!r}])"
        return await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, env=environment, cwd=ROOT,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip

    async with asyncio.timeout(120):
        assert await (await command("database", "upgrade")).wait() == 0
        feeder = await command("views", "run")
        assert feeder.stdout is not None
        async for line in feeder.stdout:
            if b"views.feeding" in line:
                break
        feeder.send_signal(signal.SIGTERM)
        assert await feeder.wait() == 0
        rebuild = await command("views", "rebuild")
        said, _ = await rebuild.communicate()
        assert (rebuild.returncode, said.decode().splitlines()[-1]) == (
            0,
            "run live: 0 messages fed, 0 refused",
        )
