"""The Reader port over HTTP: chunks, retries with full jitter, a circuit breaker, every answer checked."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Generic, TypeVar

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from models.circuit import Circuit, CircuitPolicy
from models.execution import (
    EngineFailed,
    RequestsRejected,
    WrongAnswer,
    check_explanations,
    check_observations,
    check_proposals,
)
from models.guard import Ended, Guard
from models.reader import (
    CannotPropose,
    ExplainRequest,
    ObserveRequest,
    ProposeRequest,
    ReaderRejected,
    ReaderUnavailable,
)
from models.worker import wire
from models.worker.channel import Channel, Faulty, Reply
from models.worker.metrics import ReaderMetrics
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal

_Req = TypeVar("_Req", bound=msgspec.Struct)
_Ans = TypeVar("_Ans", bound=msgspec.Struct)

_AGAIN = frozenset({502, 503, 504})
_OBSERVATIONS = msgspec.json.Decoder(wire.ObserveAnswer)
_EXPLANATIONS = msgspec.json.Decoder(wire.ExplainAnswer)
_PROPOSALS = msgspec.json.Decoder(wire.ProposeAnswer)
_PROBLEM = msgspec.json.Decoder(wire.Problem)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class ClientConfig:
    """How patiently a worker is asked. Times are seconds."""

    timeout: float = 30.0  # a call, with all its chunks, attempts and waits
    connect_timeout: float = 2.0
    attempts: int = 4  # a chunk
    backoff: float = 0.1  # the first wait is at most this, each later one at most twice the one before
    backoff_cap: float = 3.0
    chunk_requests: int = 256
    chunk_bytes: int = 4 * 1024 * 1024
    answer_bytes: int = wire.MAX_ANSWER_BYTES
    connections: int = 64  # and calls at once: more are refused, so that none waits for a connection
    circuit: CircuitPolicy = field(default_factory=CircuitPolicy)


class _TooLarge(ReaderUnavailable):
    """The worker takes less in one call than was sent."""


@dataclass(frozen=True, kw_only=True)
class _Call(Generic[_Req, _Ans]):
    path: str
    requests: Sequence[_Req]
    encoded: Sequence[bytes]
    read: Callable[[Sequence[_Req], bytes], list[_Ans]]
    deadline: float


class WorkerReader:
    """Reads with a worker. Raises what Reader allows, and says which requests were rejected."""

    def __init__(
        self,
        url: str,
        config: ClientConfig | None = None,
        *,
        metrics: ReaderMetrics | None = None,
    ) -> None:
        self._config = config = config or ClientConfig()
        self._metrics = metrics or ReaderMetrics(CollectorRegistry())
        self._channel = Channel(
            url,
            connections=config.connections,
            connect_timeout=config.connect_timeout,
            answer_bytes=config.answer_bytes,
        )
        self._guard = Guard(
            config.circuit,
            _meaning,
            on_end=lambda ended: self._metrics.attempts.labels(ended.value).inc(),
            on_move=self._moved,
        )
        self._outstanding = 0

    async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        return await self._ask(wire.OBSERVE, requests, _observations)

    async def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        return await self._ask(wire.EXPLAIN, requests, _explanations)

    async def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        """One proposal a request, in order. Raises CannotPropose where the engine finds no targets."""
        return await self._ask(wire.PROPOSE, requests, _proposals)

    async def proposes(self) -> bool:
        """Whether the worker's engine finds targets. Raises ReaderUnavailable where it does not say."""
        deadline = monotonic() + self._config.timeout
        asked: Sequence[ProposeRequest] = ()
        call = _Call(path=wire.PROPOSE, requests=asked, encoded=(), read=_proposals, deadline=deadline)
        try:
            with self._counted():
                await self._persist(call, 0, 0)
        except CannotPropose:
            return False
        return True

    async def close(self) -> None:
        """Give the connections back; after it, only another event loop may use the reader."""
        await self._channel.close()

    @property
    def circuit(self) -> Circuit:
        """Whether calls go through now."""
        return self._guard.breaker.state

    async def _ask(
        self, path: str, requests: Sequence[_Req], read: Callable[[Sequence[_Req], bytes], list[_Ans]]
    ) -> list[_Ans]:
        if not requests:
            return []
        deadline = monotonic() + self._config.timeout
        encoded = _encoded(requests)
        call = _Call(path=path, requests=requests, encoded=encoded, read=read, deadline=deadline)
        spans = wire.spans(
            [len(part) + 1 for part in encoded],
            most=self._config.chunk_requests,
            most_bytes=self._config.chunk_bytes,
        )
        with self._counted():
            return [answer for start, stop in spans for answer in await self._span(call, start, stop)]

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._outstanding >= self._config.connections:
            raise ReaderUnavailable(f"{self._outstanding} calls to the worker are under way")
        self._outstanding += 1
        try:
            yield
        finally:
            self._outstanding -= 1

    async def _span(self, call: _Call[_Req, _Ans], start: int, stop: int) -> list[_Ans]:
        try:
            return await self._persist(call, start, stop)
        except RequestsRejected as rejected:
            indexes = [start + index for index in rejected.indexes]
            raise RequestsRejected(str(rejected), indexes) from None
        except _TooLarge as error:
            if stop - start == 1:
                raise RequestsRejected(f"too large for the worker: {error}", [start]) from None
        middle = (start + stop) // 2
        return [*await self._span(call, start, middle), *await self._span(call, middle, stop)]

    async def _persist(self, call: _Call[_Req, _Ans], start: int, stop: int) -> list[_Ans]:
        if monotonic() >= call.deadline:  # used up by earlier chunks, which is no fault of this attempt's
            raise ReaderUnavailable(f"not read whole within {self._config.timeout} s")
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._attempt(call, start, stop)
            except Faulty as fault:
                wait = self._wait(attempt, fault)
                if not fault.again or attempt >= self._config.attempts or monotonic() + wait >= call.deadline:
                    _log.warning("reader.unavailable", attempts=attempt, fault=str(fault))
                    raise
            await asyncio.sleep(wait)

    def _wait(self, attempt: int, fault: Faulty) -> float:
        most = min(self._config.backoff * 2 ** (attempt - 1), self._config.backoff_cap)
        return (fault.asked_wait or 0.0) + random.uniform(0, most)

    async def _attempt(self, call: _Call[_Req, _Ans], start: int, stop: int) -> list[_Ans]:
        with self._guard.attempt():
            reply = await self._channel.post(
                call.path,
                wire.body_of(call.encoded[start:stop]),
                within=max(call.deadline - monotonic(), 0.001),
            )
            if reply.status != 200:
                raise _refused(reply, stop - start)
            try:
                return call.read(call.requests[start:stop], reply.body)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, WrongAnswer) as error:
                self._metrics.wrong_answers.inc()
                raise Faulty(f"a wrong answer: {type(error).__name__}", again=False) from error

    def _moved(self, before: Circuit, after: Circuit) -> None:
        _log.info("reader.circuit", before=before.value, after=after.value)
        if after is Circuit.OPEN:
            self._metrics.circuit_opened.inc()


def _meaning(error: BaseException) -> Ended:
    if isinstance(error, Faulty):
        return Ended.FAILED
    return Ended.REFUSED if isinstance(error, ReaderUnavailable | ReaderRejected) else Ended.CANCELLED


def _encoded(requests: Sequence[msgspec.Struct]) -> list[bytes]:
    encoded: list[bytes] = []
    for index, request in enumerate(requests):
        try:
            encoded.append(msgspec.json.encode(request))
        except UnicodeEncodeError as error:  # half of a surrogate pair has no UTF-8
            raise RequestsRejected(f"not to be encoded: {error.reason}", [index]) from None
    return encoded


def _refused(reply: Reply, requests: int) -> Exception:
    """What an answer other than 200 means."""
    problem = _problem(reply)
    message = f"{reply.status} {problem.reason}: {problem.detail}"
    if reply.status == 422:
        return RequestsRejected(message, [index for index in problem.indexes if index < requests])
    if reply.status == 413:
        return _TooLarge(message)
    if reply.status in _AGAIN:
        # Without the detail: faults are logged, and an engine's own words may quote a turn.
        return Faulty(f"{reply.status} {problem.reason}", again=True, retry_after=reply.retry_after)
    if problem.reason == wire.Reason.CANNOT_PROPOSE:
        return CannotPropose(message)
    if problem.reason == wire.Reason.ENGINE_FAILED:
        return EngineFailed(message)
    return ReaderUnavailable(message, reply.retry_after or 1.0)


def _problem(reply: Reply) -> wire.Problem:
    # What answers may be a proxy that speaks HTML.
    try:
        return _PROBLEM.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return wire.Problem("about:blank", "", reply.status, "unexplained")


def _observations(requests: Sequence[ObserveRequest], body: bytes) -> list[Observation]:
    return check_observations(requests, _OBSERVATIONS.decode(body).observations)


def _explanations(requests: Sequence[ExplainRequest], body: bytes) -> list[Explanation]:
    return check_explanations(requests, _EXPLANATIONS.decode(body).explanations)


def _proposals(requests: Sequence[ProposeRequest], body: bytes) -> list[Proposal]:
    return check_proposals(requests, _PROPOSALS.decode(body).proposals)
