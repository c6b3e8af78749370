import asyncio
import threading

import pytest

from models.execution import EngineFailed
from models.local import LocalReader
from models.reader import Reader, ReaderUnavailable
from tests.models.worker.fakes import FakeEngine, eventually, requests


class ImmediateEngine(FakeEngine):
    immediate = True


async def test_it_is_a_reader() -> None:
    reader = LocalReader(FakeEngine())
    assert isinstance(reader, Reader)
    await reader.close()


async def test_model_work_leaves_the_loop() -> None:
    engine = FakeEngine()
    reader = LocalReader(engine)
    await reader.observe(requests("+1"))
    assert threading.get_ident() not in engine.threads
    await reader.close()


async def test_an_immediate_engine_is_called_in_place_without_a_thread() -> None:
    engine = ImmediateEngine()
    reader = LocalReader(engine)
    before = threading.active_count()
    await reader.observe(requests("+1"))
    assert engine.threads == {threading.get_ident()}
    assert threading.active_count() == before
    await reader.close()


async def test_an_engine_is_made_in_its_thread() -> None:
    made = []

    def factory() -> FakeEngine:
        made.append(threading.get_ident())
        return FakeEngine()

    reader = await LocalReader.load(factory)
    await reader.observe(requests("+1"))
    assert made == list(reader._engine.threads) != [threading.get_ident()]
    await reader.close()


async def test_an_engine_that_cannot_be_made_says_why_and_leaves_no_thread() -> None:
    def factory() -> FakeEngine:
        raise OSError("no weights")

    before = threading.active_count()
    with pytest.raises(OSError, match="no weights"):
        await LocalReader.load(factory)
    await eventually(lambda: threading.active_count() == before)


async def test_calls_behind_a_stuck_one_are_unavailable_at_once() -> None:
    engine = FakeEngine()
    reader = LocalReader(engine, timeout=0.05)
    first, second = (asyncio.ensure_future(reader.observe(requests(text))) for text in ("block", "+1"))
    for call in (first, second):
        with pytest.raises(ReaderUnavailable, match="no answer"):
            await call
    await eventually(lambda: reader._thread.running_for > 0.05)
    with pytest.raises(ReaderUnavailable, match="stuck"):
        await reader.observe(requests("+1"))
    engine.open()
    await eventually(lambda: reader._thread.running_for == 0)
    assert await reader.observe(requests("+1"))
    assert engine.batches == [["m-0"], ["m-0"]]  # what timed out while waiting was never read
    await reader.close()


async def test_no_more_calls_wait_than_allowed() -> None:
    engine = FakeEngine()
    reader = LocalReader(engine, waiting=1)
    running = asyncio.ensure_future(reader.observe(requests("block")))
    await eventually(engine.blocked.is_set)
    waiting = asyncio.ensure_future(reader.observe(requests("+1")))
    await asyncio.sleep(0)
    with pytest.raises(ReaderUnavailable, match="wait"):
        await reader.observe(requests("+1"))
    engine.open()
    assert await running
    assert await waiting
    await reader.close()


async def test_a_broken_engine_is_unavailable_with_its_cause() -> None:
    reader = LocalReader(FakeEngine())
    with pytest.raises(EngineFailed) as raised:
        await reader.observe(requests("boom"))
    assert isinstance(raised.value.__cause__, RuntimeError)
    await reader.close()


async def test_closing_does_not_wait_for_a_hanging_engine() -> None:
    engine = FakeEngine()
    reader = LocalReader(engine, timeout=0.01)
    with pytest.raises(ReaderUnavailable):
        await reader.observe(requests("block"))
    async with asyncio.timeout(3):
        await reader.close()
    with pytest.raises(ReaderUnavailable):
        await reader.observe(requests("+1"))
    engine.open()
