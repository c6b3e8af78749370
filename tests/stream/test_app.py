import asyncio
import datetime as dt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from models import shipped
from stream import app
from stream.settings import load
from tracker.clock import Clock


@pytest.mark.parametrize("seconds", ["2", "60", "600"])
async def test_every_rebalance_timeout_that_settings_allow_is_one_that_faust_takes(
    seconds: str, tmp_path: Path
) -> None:
    """Faust refuses a session timeout above that of a request when its consumer starts."""
    settings = load({"VOLTEFACE_REBALANCE_SECONDS": seconds, "VOLTEFACE_BATCH_SECONDS": "0.5"})
    held: list[object] = []
    agent: Any = SimpleNamespace(steered=held.append)
    conf = app.build(settings, agent, tmp_path).conf
    assert conf.broker_session_timeout == float(seconds)
    assert conf.broker_request_timeout >= conf.broker_session_timeout


def test_rules_are_what_settings_say() -> None:
    rules = app.rules(load({"VOLTEFACE_REACH_DAYS": "3", "VOLTEFACE_CLOCK_SKEW_SECONDS": "5"}))
    assert rules.clock == Clock(dt.timedelta(seconds=5), dt.timedelta(days=3))
    assert not rules.persisted
    assert (rules.policy.name, rules.policies) == (shipped.ENCODER.name, {})


def test_rules_have_a_policy_for_each_reader(tmp_path: Path) -> None:
    (tmp_path / "strict.toml").write_text('name = "strict"\n')
    config = tmp_path / "volteface.toml"
    config.write_text('[[readers]]\nlanguages = ["zh", "yue"]\npolicy = "strict.toml"\n')
    rules = app.rules(load({"VOLTEFACE_CONFIG": str(config)}))
    assert {language: policy.name for language, policy in rules.policies.items()} == {
        "zh": "strict",
        "yue": "strict",
    }


class Running:
    """A Faust app that runs, or has crashed."""

    crash_reason = "a reason"

    def __init__(self, *, ended: bool = False) -> None:
        self.ended = ended

    async def wait_until_stopped(self) -> None:
        if not self.ended:
            await asyncio.Event().wait()


class Watching:
    """A watchdog that says so at once, or never."""

    def __init__(self, said: str | None = None) -> None:
        self.said = said

    async def run(self) -> str:
        if self.said is None:
            await asyncio.Event().wait()
        return str(self.said)


async def _until(*, told: bool = False, ended: bool = False, said: str | None = None) -> None:
    stop, watching = asyncio.Event(), Watching(said)
    if told:
        stop.set()
    await app._until(stop, Running(ended=ended), watching)  # type: ignore[arg-type]


async def test_an_app_runs_until_it_is_told_to_stop_or_ends_or_stalls() -> None:
    await _until(told=True)
    with pytest.raises(app.AppFailed, match="ended by itself: 'a reason'"):
        await _until(ended=True)
    with pytest.raises(app.AppStalled, match="partition 3"):
        await _until(said="partition 3 has not moved")
    await _until(told=True, ended=True, said="all at once")
