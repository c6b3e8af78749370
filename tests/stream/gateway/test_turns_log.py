"""The turns log: calls that come together go together, each is told apart, and none waits for ever."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator

import pytest

from stream.gateway import turns_log
from stream.gateway.turns_log import LogUnavailable, TurnsLog
from stream.sender import SenderUnavailable
from tests.stream.gateway.stand import Kept
from tracker.records import CreateTurn, record_id

NOW = dt.datetime(2026, 11, 29, 20, 0, tzinfo=dt.UTC)


def turn(name: str) -> CreateTurn:
    return CreateTurn(conversation="room", sent_at=NOW, turn=name, holder="ann", text="Tea!")


@contextlib.asynccontextmanager
async def working(kept: Kept, seconds: float = 5.0) -> AsyncIterator[TurnsLog]:
    log = TurnsLog(kept, seconds=seconds)
    task = asyncio.create_task(log.run())
    try:
        yield log
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _begun(kept: Kept, log: TurnsLog, count: int) -> list[asyncio.Task[None]]:
    """One call under way, and others that wait behind it, in order."""
    tasks = []
    for at in range(count):
        tasks.append(asyncio.create_task(log.append([turn(f"m{at}")])))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return tasks


async def test_calls_that_come_together_go_together_in_order() -> None:
    kept = Kept()
    kept.go.clear()
    async with working(kept) as log:
        calls = await _begun(kept, log, 20)
        kept.go.set()
        await asyncio.gather(*calls)
    assert kept.calls == 2
    assert [record_id(record) for record in kept.records] == [f"create/m{at}/0" for at in range(20)]


async def test_all_that_go_together_fail_together_and_may_go_again() -> None:
    kept = Kept()
    kept.away = SenderUnavailable("away")
    async with working(kept) as log:
        found = await asyncio.gather(*await _begun(kept, log, 3), return_exceptions=True)
        assert all(isinstance(one, LogUnavailable) for one in found) and log.away
        kept.away = None
        await log.append([turn("m0")])
        assert not log.away and len(kept.records) == 1


async def test_who_is_sent_nothing_meanwhile_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_log, "AWAY_SECONDS", 0.2)
    kept = Kept()
    kept.away = SenderUnavailable("away")
    async with working(kept) as log, asyncio.timeout(10):
        with pytest.raises(LogUnavailable):
            await log.append([turn("m0")])
        assert log.away
        while log.away:  # noqa: ASYNC110 - time must pass
            await asyncio.sleep(0.05)


async def test_what_nobody_waits_for_any_more_is_not_written() -> None:
    kept = Kept()
    kept.go.clear()
    async with working(kept, seconds=0.05) as log:
        found = await asyncio.gather(*await _begun(kept, log, 3), return_exceptions=True)
        assert all(isinstance(one, LogUnavailable) for one in found)
        kept.go.set()
        await log.append([turn("later")])
    assert [record_id(record) for record in kept.records] == ["create/m0/0", "create/later/0"]


async def test_more_than_may_wait_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_log, "MOST_WAITING_BYTES", 300)
    kept = Kept()
    kept.go.clear()
    async with working(kept) as log:
        calls = await _begun(kept, log, 2)
        with pytest.raises(LogUnavailable, match="waits already"):
            await log.append([turn("one more")])
        kept.go.set()
        await asyncio.gather(*calls)
        await log.append([turn("one more")])
