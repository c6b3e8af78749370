import asyncio
import threading
import time

import pytest

from models.engine_thread import EngineBusy, EngineClosed, EngineThread, left_running
from tests.models.worker.fakes import PATIENCE, eventually


async def test_calls_run_one_after_the_other_on_one_thread_that_is_not_the_loops() -> None:
    thread = EngineThread()
    ran = await asyncio.gather(*(thread.call(threading.get_ident, within=PATIENCE) for _ in range(8)))
    assert len(set(ran)) == 1
    assert threading.get_ident() not in ran
    assert await thread.close()


async def test_what_the_call_raises_reaches_its_caller() -> None:
    thread = EngineThread()
    with pytest.raises(SystemExit):
        await thread.call(lambda: exec("raise SystemExit"), within=PATIENCE)
    assert await thread.call(lambda: 3, within=PATIENCE) == 3
    await thread.close()


async def test_the_loop_runs_on_while_a_call_blocks() -> None:
    thread, gate = EngineThread(), threading.Event()
    running = asyncio.ensure_future(thread.call(lambda: gate.wait(PATIENCE), within=PATIENCE))
    await eventually(lambda: thread.running_for > 0)
    gate.set()
    assert await running
    await eventually(lambda: thread.running_for == 0)
    await thread.close()


async def test_a_late_result_is_dropped_and_the_next_call_gets_its_own() -> None:
    thread, gate = EngineThread(), threading.Event()
    with pytest.raises(TimeoutError):
        await thread.call(lambda: gate.wait(PATIENCE), within=0.01)
    gate.set()
    assert await thread.call(lambda: "mine", within=PATIENCE) == "mine"
    await thread.close()


async def test_no_more_than_so_many_wait_and_a_cancelled_one_never_runs() -> None:
    thread, gate, ran = EngineThread(waiting=1), threading.Event(), []
    running = asyncio.ensure_future(thread.call(lambda: gate.wait(PATIENCE), within=PATIENCE))
    await eventually(lambda: thread.running_for > 0)
    waiting = asyncio.ensure_future(thread.call(lambda: ran.append(1), within=PATIENCE))
    await asyncio.sleep(0)
    with pytest.raises(EngineBusy):
        await thread.call(lambda: None, within=PATIENCE)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.set()
    await running
    assert await thread.close()
    assert ran == []


async def test_closing_refuses_what_waits_and_leaves_a_hanging_call_behind() -> None:
    thread, gate = EngineThread(), threading.Event()
    hanging = asyncio.ensure_future(thread.call(lambda: gate.wait(PATIENCE), within=PATIENCE))
    await eventually(lambda: thread.running_for > 0)
    waiting = asyncio.ensure_future(thread.call(lambda: None, within=PATIENCE))
    await asyncio.sleep(0)
    started = time.monotonic()
    assert not await thread.close(grace=0.05)
    assert time.monotonic() - started < 1
    with pytest.raises(EngineClosed):
        await waiting
    with pytest.raises(EngineClosed):
        await thread.call(lambda: None, within=PATIENCE)
    gate.set()
    assert await hanging
    assert await thread.close()


async def test_a_thread_never_used_is_never_started() -> None:
    thread = EngineThread(name="unused-engine")
    assert await thread.close()
    assert "unused-engine" not in {running.name for running in threading.enumerate()}


async def test_a_thread_that_hangs_is_told_to_whoever_ends_the_process() -> None:
    await eventually(lambda: not left_running())
    thread, held = EngineThread(), threading.Event()
    with pytest.raises(TimeoutError):
        await thread.call(held.wait, within=0.01)
    assert not await thread.close(grace=0.01)
    assert left_running()
    held.set()
    assert await thread.close(grace=5.0)
    await eventually(lambda: not left_running())
