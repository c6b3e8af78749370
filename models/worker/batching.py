"""Micro-batches: many calls' requests, read together by one engine on its thread.

The queue is bounded and refuses at once when full. A batch goes when full by requests or tokens, or when
its oldest request has waited for `linger`; the kinds stand apart, and whichever waits longest goes first. A
client that went away has its requests taken out before their batch runs.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any, TypeVar

import structlog

from models import execution
from models.engine_thread import EngineThread
from models.execution import Failed, Outcome
from models.reader import Engine, ExplainRequest, ObserveRequest, Proposer, ProposeRequest
from models.worker.lanes import BatchLimits, Call, Item, Lane
from models.worker.metrics import WorkerMetrics
from models.worker.wire import Reason, Refusal
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal

T = TypeVar("T")
_Req = TypeVar("_Req")
_Ans = TypeVar("_Ans")

_log = structlog.get_logger(__name__)


class EngineStuck(RuntimeError):
    """A batch ran for longer than any may; the thread cannot be freed, only the process."""


class Throughput:
    """Requests a second of engine time, lately."""

    _KEPT = 0.8  # of the past at each batch: about the last five count
    _UNKNOWN = 1.0  # seconds to wait before anything was measured

    def __init__(self) -> None:
        self._requests = self._seconds = 0.0

    def add(self, requests: int, seconds: float) -> None:
        """One batch."""
        self._requests = self._KEPT * self._requests + requests
        self._seconds = self._KEPT * self._seconds + seconds

    def seconds_for(self, requests: int) -> float:
        """About how long so many requests take."""
        return requests * self._seconds / self._requests if self._requests else self._UNKNOWN


class Batcher:
    """Gathers calls into batches while `run` runs. Raises Refusal, RequestsRejected or ReaderUnavailable."""

    def __init__(
        self, engine: Engine, thread: EngineThread, limits: BatchLimits, metrics: WorkerMetrics
    ) -> None:
        # Company is worth waiting for only where a batch costs less than its parts.
        self._limits = replace(limits, linger=0.0) if getattr(engine, "immediate", False) else limits
        self._thread = thread
        self._metrics = metrics
        self._throughput = Throughput()
        self._observing = Lane("observe", partial(execution.observe, engine), engine.tokens)
        self._explaining = Lane(
            "explain", partial(execution.explain, engine), lambda request: engine.tokens(request.observed)
        )
        self._proposing = _proposing(engine)
        lanes = (self._observing, self._explaining, self._proposing)
        self._lanes: tuple[Lane[Any, Any], ...] = tuple(lane for lane in lanes if lane is not None)
        self._arrival = asyncio.Event()
        self._unanswered: set[Call[Any, Any]] = set()
        self._draining = False

    async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        return await self._submit(self._observing, requests)

    async def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        return await self._submit(self._explaining, requests)

    async def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        """One proposal a request, in order; refused, however few, where the engine finds no targets."""
        if self._proposing is None:
            raise Refusal(Reason.CANNOT_PROPOSE, "the engine finds no targets")
        return await self._submit(self._proposing, requests)

    @property
    def depth(self) -> int:
        """Requests that wait."""
        return sum(map(len, self._lanes))

    @property
    def ill(self) -> Reason | None:
        """Why a call would be refused now, if one of a single request would."""
        if self._draining:
            return Reason.DRAINING
        if self._thread.running_for > self._limits.stuck_after:
            return Reason.STUCK
        return Reason.QUEUE_FULL if self.depth >= self._limits.queued else None

    async def run(self) -> None:
        """Read what comes, until cancelled; whoever then still waits is refused. Raises EngineStuck."""
        try:
            while True:
                lane = await self._next_lane()
                if batch := await self._gather(lane):
                    await self._read(lane, batch)
        finally:
            self._abandon()

    async def drain(self, grace: float) -> bool:
        """Refuse new calls and answer the others; whether all were within `grace` seconds."""
        self._draining = True
        waiting = {call.answered for call in self._unanswered}
        if waiting:
            _, waiting = await asyncio.wait(waiting, timeout=grace)
        self._abandon()
        return not waiting

    async def _submit(self, lane: Lane[_Req, _Ans], requests: Sequence[_Req]) -> list[_Ans]:
        if not requests:
            return []
        self._admit(len(requests))
        call: Call[_Req, _Ans] = Call(requests, asyncio.get_running_loop().create_future(), monotonic())
        lane.add(call)
        self._unanswered.add(call)
        self._arrival.set()
        try:
            async with asyncio.timeout(self._limits.timeout):
                outcomes = await call.answered
        except TimeoutError:
            self._drop(lane, call)
            raise Refusal(Reason.TIMED_OUT, f"no answer within {self._limits.timeout} s") from None
        except asyncio.CancelledError:
            self._drop(lane, call)
            raise
        finally:
            self._unanswered.discard(call)
        return execution.unwrap(outcomes)

    def _admit(self, requests: int) -> None:
        reason = self.ill
        if reason is None and self.depth + requests > self._limits.queued:
            reason = Reason.QUEUE_FULL
        if reason is not None:
            wait = math.ceil(min(max(self._throughput.seconds_for(self.depth + requests), 1.0), 30.0))
            raise Refusal(reason, f"{self.depth} requests wait", retry_after=wait)

    def _abandon(self) -> None:
        # An answer, so that a client asks elsewhere at once: a cut connection it would take for a crash.
        for call in self._unanswered:
            if not call.answered.done():
                call.answered.set_exception(Refusal(self.ill or Reason.STUCK, "not read", retry_after=1.0))

    def _drop(self, lane: Lane[_Req, _Ans], call: Call[_Req, _Ans]) -> None:
        lane.forget(call)
        self._metrics.dropped.labels(lane.kind).inc()

    async def _next_lane(self) -> Lane[Any, Any]:
        while not self.depth:
            self._arrival.clear()
            await self._arrival.wait()
        return min(self._lanes, key=lambda lane: lane.oldest)

    async def _gather(self, lane: Lane[_Req, _Ans]) -> list[Item[_Req, _Ans]]:
        goes_at = lane.oldest + self._limits.linger
        while True:
            while uncounted := lane.uncounted(self._limits):
                await self._count(lane, uncounted)
            wait = goes_at - monotonic()
            if wait <= 0 or lane.full(self._limits):
                return lane.take(self._limits)
            self._arrival.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._arrival.wait()

    async def _count(self, lane: Lane[_Req, _Ans], items: Sequence[Item[_Req, _Ans]]) -> None:
        # On the engine's thread: a tokenizer belongs to it as much as the weights do.
        requests = [item.request for item in items]
        most = self._limits.tokens
        counts = await self._on_thread(partial(_counted, lane.tokens, requests, most))
        for item, tokens in zip(items, counts, strict=True):
            item.tokens = tokens

    async def _read(self, lane: Lane[_Req, _Ans], batch: Sequence[Item[_Req, _Ans]]) -> None:
        started = monotonic()
        self._measure(lane, batch, started)
        work = partial(execution.execute, lane.run, [item.request for item in batch])
        outcomes: list[Outcome[_Ans]] = await self._on_thread(work)
        seconds = monotonic() - started
        self._metrics.seconds.labels("engine").observe(seconds)
        self._throughput.add(len(batch), seconds)
        for item, outcome in zip(batch, outcomes, strict=True):
            item.call.put(item.index, outcome)
        if errors := [outcome.error for outcome in outcomes if isinstance(outcome, Failed)]:
            _log.error(
                "worker.batch_failed", kind=lane.kind, requests=len(batch), error=type(errors[0]).__name__
            )

    def _measure(self, lane: Lane[_Req, _Ans], batch: Sequence[Item[_Req, _Ans]], now: float) -> None:
        self._metrics.batch_requests.labels(lane.kind).observe(len(batch))
        self._metrics.batch_tokens.labels(lane.kind).observe(sum(item.tokens or 0 for item in batch))
        queue = self._metrics.seconds.labels("queue")
        for item in batch:
            queue.observe(now - item.call.arrived)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        running = asyncio.ensure_future(self._thread.call(work, within=self._limits.give_up_after))
        try:
            while not running.done():
                await asyncio.wait({running}, timeout=self._limits.stuck_after)
                if not running.done():
                    _log.error("worker.batch_stuck", running_for=round(self._thread.running_for, 1))
            return running.result()
        except TimeoutError:
            raise EngineStuck(f"a batch ran for {self._limits.give_up_after} s") from None
        finally:
            running.cancel()


def _proposing(engine: Engine) -> Lane[ProposeRequest, Proposal] | None:
    if not isinstance(engine, Proposer):
        return None
    return Lane("propose", partial(execution.propose, engine), lambda request: engine.tokens(request.shown))


def _counted(tokens: Callable[[_Req], int], requests: Sequence[_Req], most: int) -> list[int]:
    """Tokens a request; one that cannot be counted fills a batch, so that it is read, and refused, alone."""

    def count(request: _Req) -> int:
        try:
            return tokens(request)
        except Exception:
            return most

    return [count(request) for request in requests]
