import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from models.engine_thread import EngineThread
from models.execution import EngineFailed, RequestsRejected
from models.reader import Engine
from models.worker.batching import Batcher, EngineStuck, Throughput
from models.worker.lanes import BatchLimits
from models.worker.metrics import WorkerMetrics
from models.worker.wire import Reason, Refusal
from tests.models.worker.fakes import (
    PATIENCE,
    FakeEngine,
    eventually,
    explain_request,
    observation,
    observe_request,
    requests,
)


@asynccontextmanager
async def batching(engine: Engine, **limits: float) -> AsyncIterator[Batcher]:
    thread = EngineThread()
    metrics = WorkerMetrics(CollectorRegistry())
    batcher = Batcher(engine, thread, BatchLimits(**limits), metrics)
    running = asyncio.ensure_future(batcher.run())
    try:
        yield batcher
    finally:
        running.cancel()
        await asyncio.wait({running})
        await thread.close()


async def blocked(batcher: Batcher, engine: FakeEngine) -> "asyncio.Future[object]":
    """A call that now occupies the engine."""
    call = asyncio.ensure_future(batcher.observe([observe_request("blocking", "block")]))
    await eventually(engine.blocked.is_set)
    return call


async def refusal(call: "asyncio.Future[object]") -> Refusal:
    with pytest.raises(Refusal) as raised:
        await call
    return raised.value


async def test_calls_that_come_together_are_read_together() -> None:
    engine = FakeEngine()
    async with batching(engine, linger=0.05) as batcher:
        asked = [[observe_request(f"m-{call}")] for call in range(6)]
        answers = await asyncio.gather(*map(batcher.observe, asked))
    assert answers == [[observation(request) for request in part] for part in asked]
    assert engine.batches == [[f"m-{call}" for call in range(6)]]


async def test_a_full_batch_does_not_wait() -> None:
    engine = FakeEngine()
    async with batching(engine, linger=10 * PATIENCE, requests=3) as batcher, asyncio.timeout(PATIENCE):
        await batcher.observe(requests("+1", "+1", "+1"))
    async with batching(engine, linger=10 * PATIENCE, tokens=5) as batcher, asyncio.timeout(PATIENCE):
        full = asyncio.ensure_future(batcher.observe(requests("xxx", "xx")))
        assert await batcher.observe([]) == []
        await eventually(lambda: batcher.depth == 2)
        waiting = asyncio.ensure_future(batcher.observe(requests("x")))
        await full
        assert not waiting.done()
        waiting.cancel()


async def test_an_immediate_engine_is_not_kept_waiting_for_company() -> None:
    class Immediate(FakeEngine):
        immediate = True

    async with batching(Immediate(), linger=10 * PATIENCE) as batcher, asyncio.timeout(PATIENCE):
        assert await batcher.observe(requests("+1"))


async def test_observing_and_explaining_are_kept_apart_and_the_oldest_goes_first() -> None:
    engine = FakeEngine()
    async with batching(engine) as batcher:
        first = await blocked(batcher, engine)
        calls = [
            asyncio.ensure_future(batcher.explain([explain_request("explained")])),
            asyncio.ensure_future(batcher.observe([observe_request("observed")])),
            asyncio.ensure_future(batcher.explain([explain_request("explained too")])),
        ]
        await eventually(lambda: batcher.depth == 3)
        engine.open()
        await asyncio.gather(first, *calls)
    assert engine.batches == [["blocking"], ["explained", "explained too"], ["observed"]]


async def test_the_order_of_arrival_is_the_order_of_reading() -> None:
    engine = FakeEngine()
    async with batching(engine, requests=2) as batcher:
        first = await blocked(batcher, engine)
        calls = [asyncio.ensure_future(batcher.observe([observe_request(f"m-{at}")])) for at in range(5)]
        await eventually(lambda: batcher.depth == 5)
        engine.open()
        await asyncio.gather(first, *calls)
    assert engine.batches[1:] == [["m-0", "m-1"], ["m-2", "m-3"], ["m-4"]]


async def test_a_full_queue_refuses_at_once_and_says_when_to_come_again() -> None:
    engine = FakeEngine()
    async with batching(engine, queued=2) as batcher:
        first = await blocked(batcher, engine)
        waiting = asyncio.ensure_future(batcher.observe(requests("+1", "+1")))
        await eventually(lambda: batcher.depth == 2)
        assert batcher.ill is Reason.QUEUE_FULL
        full = await refusal(asyncio.ensure_future(batcher.observe(requests("+1"))))
        assert full.reason is Reason.QUEUE_FULL
        assert full.retry_after == 1  # nothing is known of the speed yet
        engine.open()
        await asyncio.gather(first, waiting)
        assert batcher.ill is None


async def test_who_went_away_is_not_read_and_frees_the_place() -> None:
    engine = FakeEngine()
    async with batching(engine, queued=1) as batcher:
        first = await blocked(batcher, engine)
        gone = asyncio.ensure_future(batcher.observe([observe_request("gone away")]))
        await eventually(lambda: batcher.depth == 1)
        gone.cancel()
        await asyncio.wait({gone})
        assert batcher.depth == 0
        second = asyncio.ensure_future(batcher.observe([observe_request("stayed")]))
        await eventually(lambda: batcher.depth == 1)
        engine.open()
        await asyncio.gather(first, second)
    assert engine.batches == [["blocking"], ["stayed"]]


async def test_a_call_that_waits_too_long_times_out_and_is_not_read() -> None:
    engine = FakeEngine()
    async with batching(engine, timeout=1.0) as batcher:
        first = await blocked(batcher, engine)
        late = asyncio.ensure_future(batcher.observe([observe_request("late")]))
        assert (await refusal(late)).reason is Reason.TIMED_OUT
        assert (await refusal(first)).reason is Reason.TIMED_OUT
        engine.open()
        assert await batcher.observe([observe_request("next")])
    assert engine.batches == [["blocking"], ["next"]]


async def test_a_bad_request_in_a_batch_fails_its_own_call_alone() -> None:
    engine = FakeEngine()
    async with batching(engine, linger=0.05) as batcher:
        calls = [batcher.observe(requests(*texts)) for texts in (["+1", "bad"], ["+1"], ["boom"], ["+1"])]
        bad, good, broken, fine = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(bad, RequestsRejected)
    assert bad.indexes == (1,)
    assert isinstance(broken, EngineFailed)
    assert good == fine == [observation(observe_request("m-0"))]
    assert len(engine.batches[0]) == 5


async def test_one_whose_tokens_cannot_be_counted_is_read_alone() -> None:
    class Uncountable(FakeEngine):
        def tokens(self, request: object) -> int:
            raise ValueError("no tokens")

    engine = Uncountable()
    async with batching(engine, linger=0.05) as batcher:
        await batcher.observe(requests("+1", "+1"))
    assert engine.batches == [["m-0"], ["m-1"]]


async def test_tokens_are_counted_on_the_engines_thread() -> None:
    class Counting(FakeEngine):
        def tokens(self, request: object) -> int:
            self.threads.add(threading.get_ident())
            return 1

    engine = Counting()
    async with batching(engine) as batcher:
        await batcher.observe(requests("+1"))
    assert len(engine.threads) == 1
    assert threading.get_ident() not in engine.threads


async def test_a_stuck_engine_is_told_of_and_new_calls_are_refused_at_once() -> None:
    engine = FakeEngine()
    async with batching(engine, stuck_after=0.05) as batcher:
        first = await blocked(batcher, engine)
        await eventually(lambda: batcher.ill is Reason.STUCK)
        stuck = await refusal(asyncio.ensure_future(batcher.observe(requests("+1"))))
        assert stuck.reason is Reason.STUCK
        engine.open()
        assert await first
        assert batcher.ill is None


async def test_an_engine_that_hangs_for_ever_ends_the_batcher() -> None:
    engine, thread = FakeEngine(), EngineThread()
    limits = BatchLimits(stuck_after=0.02, give_up_after=0.1)
    batcher = Batcher(engine, thread, limits, WorkerMetrics(CollectorRegistry()))
    running = asyncio.ensure_future(batcher.run())
    call = await blocked(batcher, engine)
    with pytest.raises(EngineStuck):
        await running
    assert (await refusal(call)).reason is Reason.STUCK
    engine.open()
    await thread.close()


async def test_draining_answers_what_is_queued_and_refuses_the_rest() -> None:
    engine = FakeEngine()
    async with batching(engine) as batcher:
        first = await blocked(batcher, engine)
        waiting = asyncio.ensure_future(batcher.observe(requests("+1")))
        await eventually(lambda: batcher.depth == 1)
        draining = asyncio.ensure_future(batcher.drain(PATIENCE))
        await eventually(lambda: batcher.ill is Reason.DRAINING)
        late = await refusal(asyncio.ensure_future(batcher.observe(requests("+1"))))
        assert late.reason is Reason.DRAINING
        engine.open()
        assert await draining
        assert await first
        assert await waiting


async def test_a_drain_that_takes_too_long_is_cut() -> None:
    engine = FakeEngine()
    async with batching(engine) as batcher:
        first = await blocked(batcher, engine)
        started = time.monotonic()
        assert not await batcher.drain(0.05)
        assert time.monotonic() - started < PATIENCE / 2
        assert (await refusal(first)).reason is Reason.DRAINING
        engine.open()


def test_the_wait_follows_the_recent_speed() -> None:
    throughput = Throughput()
    assert throughput.seconds_for(1000) == 1.0
    throughput.add(10, 1.0)
    assert throughput.seconds_for(100) == pytest.approx(10.0)
    for _ in range(30):
        throughput.add(100, 1.0)
    assert throughput.seconds_for(100) == pytest.approx(1.0, rel=0.01)
