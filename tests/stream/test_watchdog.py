"""The watchdog on looks that the tests give: what it tells, when it is ill, when it is over."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from stream import watchdog as module
from stream.offsets import Place
from stream.progress import Facts, Limits, Look
from stream.settings import Settings
from stream.vitals import Vitals
from stream.watchdog import Watchdog, limits

ROOT = Path(__file__).parents[2]
P, Q = ("turns", 0), ("turns", 1)
WITHIN = Limits(stall=10.0, routine=5.0, batch=30.0, join=20.0, outage=100.0)
IDLE = Facts(end=7, position=7)
STILL = Facts(end=9, position=7)


class Stand:
    """A watchdog, its clock, and what it sees."""

    def __init__(self, within: Limits = WITHIN) -> None:
        self.now, self.vitals, self.facts = 1000.0, Vitals(), {P: IDLE}
        self.vitals.joined = True
        self.watchdog = Watchdog(within, self.look, self.vitals, lambda: self.now)
        self.fetches = 0

    async def look(self) -> Look:
        self.fetches += 1
        paused = self.vitals.paused is not None
        return Look(facts=self.facts, fetches=self.fetches, signs=self.vitals.signs, paused=paused)

    async def after(self, seconds: float) -> str | None:
        """Look each second; why it is ill then."""
        for _ in range(int(seconds)):
            self.now += 1.0
            await self.watchdog.look()
        return self.watchdog.ill


async def test_before_the_first_look_and_the_first_join_it_is_starting() -> None:
    stand = Stand()
    assert stand.watchdog.ill == "starting"
    stand.vitals.joined = False
    assert await stand.after(1) == "starting"
    stand.vitals.joined = True
    assert await stand.after(1) is None


async def test_a_stall_is_told_once_and_its_end_too() -> None:
    stand = Stand()
    stand.facts = {P: IDLE, Q: STILL}
    with capture_logs() as logs:
        assert await stand.after(15) is None
        assert await stand.after(5) == "stalled"
        assert logs == [
            {"event": "partition.stalled", "log_level": "error", "partition": 1, "due": "fetch", "lag": 2,
             "seconds": 15.0}]  # fmt: skip
        stand.facts = {P: IDLE, Q: Facts(end=9, position=8)}
        assert await stand.after(10) is None
        assert logs[1:] == [{"event": "partition.moves", "log_level": "warning", "partition": 1, "lag": 1}]
        assert await stand.after(6) == "stalled"
    assert [entry["event"] for entry in logs] == [
        "partition.stalled", "partition.moves", "partition.stalled"]  # fmt: skip


async def test_a_stalled_partition_that_goes_is_not_said_to_move() -> None:
    stand = Stand()
    stand.facts = {P: STILL}
    await stand.after(20)
    stand.facts = {}
    with capture_logs() as logs:
        assert await stand.after(1) is None
    assert logs == []


async def test_it_ends_with_the_partitions_that_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand()
    stand.facts = {P: IDLE, Q: STILL}
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        stand.now += seconds

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert "partition 1 has not moved" in await stand.watchdog.run()
    assert set(waited) == {2.5}
    assert sum(waited) == 25.0


async def test_a_pause_is_no_readiness_and_no_end() -> None:
    stand = Stand()
    stand.facts = {P: Facts(end=9, position=9, fetched=8, place=Place(8, 7, 7), committed=7)}
    stand.vitals.pause("StoreUnavailable", stand.now)
    assert await stand.after(139) == "paused"
    assert stand.watchdog.paused is not None
    assert stand.watchdog.since(stand.watchdog.paused) == 139.0
    stand.vitals.finish(1)
    assert await stand.after(1) is None


async def test_a_partition_that_cannot_be_restored_is_no_readiness_though_others_move() -> None:
    stand = Stand()
    stand.vitals.hold(1, stand.now)
    stand.facts = {P: IDLE}
    assert await stand.after(1) == "paused"
    stand.vitals.hold(2, stand.now)
    stand.vitals.finish(1)
    assert await stand.after(9) == "paused"
    paused = stand.watchdog.paused
    assert paused is not None
    assert (paused.part, stand.watchdog.since(paused)) == ("Unrestorable", 10.0)
    stand.vitals.hold(0, stand.now)
    assert await stand.after(1) is None


async def test_a_broker_that_does_not_answer_is_a_part_that_is_away() -> None:
    stand = Stand()
    stand.facts = {P: Facts(position=7)}
    assert await stand.after(1000) == "paused"
    paused = stand.watchdog.paused
    assert paused is not None
    assert (paused.part, stand.watchdog.since(paused)) == ("Broker", 999.0)
    stand.facts = {P: IDLE}
    assert await stand.after(1) is None


async def test_time_in_which_the_process_stood_still_is_held_against_nobody() -> None:
    stand = Stand()
    stand.facts = {P: STILL}
    await stand.after(1)
    stand.now += 3600.0
    await stand.after(1)
    assert stand.watchdog.judged is not None
    assert not stand.watchdog.judged[P].over


async def test_a_defect_of_its_own_is_logged_and_ends_nothing() -> None:
    looked = asyncio.Event()

    async def broken() -> Any:
        looked.set()
        raise KeyError("a secret")

    watching = asyncio.create_task(Watchdog(WITHIN, broken, Vitals()).run())
    with capture_logs() as logs:
        await asyncio.wait_for(looked.wait(), 5)
    assert not watching.done()
    watching.cancel()
    assert [(entry["event"], entry["error"]) for entry in logs] == [("watch.failed", "KeyError")]
    assert "a secret" not in str(logs)


async def test_what_ignores_its_cancellation_holds_no_process_up() -> None:
    script = (
        "import asyncio\n"
        "from stream import watchdog\n"
        "watchdog.END_SECONDS = 0.1\n"
        "async def hung():\n"
        "    while True:\n"
        "        try: await asyncio.Event().wait()\n"
        "        except asyncio.CancelledError: pass\n"
        "async def main():\n"
        "    task = asyncio.create_task(hung())\n"
        "    await asyncio.sleep(0)\n"
        "    watchdog.end_soon()\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, cwd=ROOT)
    assert await asyncio.wait_for(process.wait(), 60) == 1


def test_a_batch_may_take_what_its_settings_allow() -> None:
    settings = Settings(stall_seconds=40.0, batch_seconds=4.0, reader_seconds=7.0, rebalance_seconds=9.0)
    found = limits(settings)
    assert (found.stall, found.join) == (40.0, 18.0)
    assert found.batch == 4.0 + 3 * 7.0 + module.REQUEST_TIMEOUT_SECONDS
