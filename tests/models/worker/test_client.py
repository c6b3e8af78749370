"""The client against servers that misbehave."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from prometheus_client import CollectorRegistry

from models.circuit import Circuit, CircuitPolicy
from models.execution import EngineFailed, RequestsRejected
from models.reader import Reader, ReaderRejected, ReaderUnavailable
from models.worker.app import BodyLimits
from models.worker.client import ClientConfig, WorkerReader
from models.worker.metrics import ReaderMetrics
from models.worker.server import WorkerConfig
from models.worker.wire import PROBLEM_JSON, ObserveAnswer, ObserveCall, Reason, Refusal
from tests.models.worker.fakes import (
    PATIENCE,
    FakeEngine,
    cooled,
    eventually,
    explain_request,
    free_port,
    observation,
    observe_request,
    requests,
    worker,
)

Answer = Callable[[bytes], web.StreamResponse | Awaitable[web.StreamResponse]]

QUICK = ClientConfig(timeout=PATIENCE, attempts=3, backoff=0.001)


def right(body: bytes) -> web.Response:
    asked = msgspec.json.decode(body, type=ObserveCall).requests
    return web.Response(body=msgspec.json.encode(ObserveAnswer([observation(request) for request in asked])))


def answering(make: Callable[[list[Any]], object]) -> Answer:
    """A 200 whose observations `make` spoils."""

    def answer(body: bytes) -> web.Response:
        asked = msgspec.json.decode(body, type=ObserveCall).requests
        spoilt = make([observation(request) for request in asked])
        return web.Response(body=msgspec.json.encode({"observations": spoilt}))

    return answer


def status(code: int, **headers: str) -> Answer:
    return lambda _: web.Response(
        status=code, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


class Script:
    """A server that gives the scripted answers in order, and the last one for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = answers
        self.bodies: list[bytes] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        answer = self.answers[min(len(self.bodies), len(self.answers)) - 1](self.bodies[-1])
        return answer if isinstance(answer, web.StreamResponse) else await answer


@asynccontextmanager
async def scripted(
    *answers: Answer, config: ClientConfig = QUICK, metrics: ReaderMetrics | None = None
) -> AsyncIterator[tuple[WorkerReader, Script]]:
    script, app = Script(*answers), web.Application(client_max_size=64 << 20)
    app.router.add_route("*", "/{path:.*}", script.handle)
    async with TestServer(app) as server:
        reader = WorkerReader(str(server.make_url("/")), config, metrics=metrics)
        try:
            yield reader, script
        finally:
            await reader.close()


def test_it_is_a_reader_and_is_made_without_a_loop() -> None:
    assert isinstance(WorkerReader("http://worker:8090"), Reader)


@pytest.mark.parametrize("url", ["worker:8090", "kafka://worker", "/v1", "http://"])
def test_what_is_no_address_is_refused_when_it_is_made(url: str) -> None:
    with pytest.raises(ValueError, match="http"):
        WorkerReader(url)


def spoilt(change: dict[str, object]) -> Answer:
    return answering(lambda right: [msgspec.structs.replace(right[0], **change), *right[1:]])


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: web.Response(body=b""),
        lambda _: web.Response(body=b"<html>"),
        lambda _: web.Response(body=b'{"observations": "\xff"}'),
        lambda _: web.Response(body=b"[" * 100_000),
        answering(lambda _: [{"turn": "m-0"}]),
        answering(lambda right: right[1:]),
        answering(lambda right: [*right, right[0]]),
        answering(lambda right: right[::-1]),
        answering(lambda _: []),
        spoilt({"turn": "m-9"}),
        spoilt({"target": "t-9"}),
        spoilt({"holder": "tom"}),
        spoilt({"revision": 3}),
        spoilt({"read_under": "oppose"}),
        answering(lambda right: [msgspec.to_builtins(right[0]) | {"relevance": 3.0}, right[1]]),
    ],
)
async def test_a_wrong_answer_is_never_folded_and_is_counted(answer: Answer) -> None:
    registry = CollectorRegistry()
    async with scripted(answer, right, metrics=ReaderMetrics(registry)) as (reader, script):
        with pytest.raises(ReaderUnavailable, match="wrong answer"):
            await reader.observe(requests("+1", "-1"))
        assert len(script.bodies) == 1
        assert len(await reader.observe(requests("+1", "-1"))) == 2
    assert registry.get_sample_value("volteface_reader_wrong_answers_total") == 1
    assert registry.get_sample_value("volteface_reader_attempts_total", {"outcome": "failed"}) == 1
    assert registry.get_sample_value("volteface_reader_attempts_total", {"outcome": "answered"}) == 1


async def test_a_wrong_explanation_is_never_folded() -> None:
    async with scripted(lambda _: web.Response(body=b'{"explanations": []}')) as (reader, _):
        with pytest.raises(ReaderUnavailable, match="wrong answer"):
            await reader.explain([explain_request("m-1")])


@pytest.mark.parametrize("code", [502, 503, 504])
async def test_a_worker_that_cannot_now_is_asked_again(code: int) -> None:
    async with scripted(status(code), status(code), right) as (reader, script):
        assert len(await reader.observe(requests("+1"))) == 1
        assert len(script.bodies) == 3
        assert len(set(script.bodies)) == 1


async def test_attempts_are_bounded() -> None:
    async with scripted(status(503, Retry_After="0")) as (reader, script):
        with pytest.raises(ReaderUnavailable, match="503"):
            await reader.observe(requests("+1"))
        assert len(script.bodies) == 3


@pytest.mark.parametrize("code", [302, 400, 401, 404, 408, 500])
async def test_another_refusal_is_not_repeated_and_rejects_nobody(code: int) -> None:
    async with scripted(status(code, Location="/elsewhere"), right) as (reader, script):
        with pytest.raises(ReaderUnavailable, match=str(code)):
            await reader.observe(requests("+1"))
        assert len(script.bodies) == 1
        assert reader.circuit is Circuit.CLOSED


async def test_an_engine_that_failed_is_told_from_a_worker_that_is_away() -> None:
    problem = Refusal(Reason.ENGINE_FAILED, "RuntimeError").problem
    answer = web.Response(status=500, body=msgspec.json.encode(problem), content_type=PROBLEM_JSON)
    async with scripted(lambda _: answer) as (reader, _):
        with pytest.raises(EngineFailed):
            await reader.observe(requests("+1"))
    async with scripted(status(500)) as (reader, _):
        with pytest.raises(ReaderUnavailable) as raised:
            await reader.observe(requests("+1"))
        assert not isinstance(raised.value, EngineFailed)


async def test_retry_after_is_waited_for() -> None:
    async with scripted(status(503, Retry_After="1"), right) as (reader, _):
        started = time.monotonic()
        assert await reader.observe(requests("+1"))
        assert time.monotonic() - started >= 1.0


@pytest.mark.parametrize(("header", "waits"), [("3600", 3600.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 1.0)])
async def test_a_wait_that_time_does_not_allow_is_left_to_the_caller(header: str, waits: float) -> None:
    config = ClientConfig(timeout=30.0, attempts=2, backoff=0.001)
    async with scripted(status(503, Retry_After=header), config=config) as (reader, _):
        with pytest.raises(ReaderUnavailable) as raised:
            await reader.observe(requests("+1"))
        assert raised.value.retry_after == waits


async def test_a_server_that_does_not_answer_times_out_once() -> None:
    never = asyncio.Event()

    async def hang(_: bytes) -> web.Response:
        await asyncio.wait_for(never.wait(), PATIENCE)
        return web.Response()

    async with scripted(hang, config=ClientConfig(timeout=0.1)) as (reader, script):
        with pytest.raises(ReaderUnavailable, match="within"):
            await reader.observe(requests("+1"))
        assert len(script.bodies) <= 1  # on a loaded machine it may not even arrive
        never.set()


async def test_time_that_earlier_chunks_used_up_is_no_fault_of_the_worker() -> None:
    async def slow(body: bytes) -> web.Response:
        await asyncio.sleep(0.06)
        return right(body)

    config = ClientConfig(timeout=0.1, chunk_requests=1, circuit=CircuitPolicy(failures=2))
    async with scripted(slow, config=config) as (reader, _):
        with pytest.raises(ReaderUnavailable, match="within"):
            await reader.observe(requests(*["+1"] * 5))
        assert reader.circuit is Circuit.CLOSED


async def test_a_connection_lost_before_the_answer_is_made_again() -> None:
    lost: list[web.Request] = []

    async def lose(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if not lost:
            lost.append(request)
            assert request.transport is not None
            request.transport.abort()
        return right(body)

    app = web.Application()
    app.router.add_post("/v1/observe", lose)
    async with TestServer(app) as server:
        reader = WorkerReader(str(server.make_url("")), QUICK)
        assert await reader.observe(requests("+1"))
        await reader.close()


async def test_nobody_at_the_address_is_unavailable() -> None:
    reader = WorkerReader("http://127.0.0.1:1", QUICK)
    with pytest.raises(ReaderUnavailable, match="no connection"):
        await reader.observe(requests("+1"))
    await reader.close()


async def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    config = ClientConfig(answer_bytes=1000)
    async with scripted(lambda _: web.Response(body=b" " * 5000), config=config) as (reader, _):
        with pytest.raises(ReaderUnavailable, match="more than 1000 bytes"):
            await reader.observe(requests("+1"))


async def test_rejections_are_counted_from_the_whole_calls_beginning() -> None:
    refused = msgspec.json.encode(
        {"type": "x", "title": "x", "status": 422, "reason": "rejected", "indexes": [1, 7]}
    )
    config = ClientConfig(chunk_requests=2)
    async with scripted(right, lambda _: web.Response(status=422, body=refused), config=config) as (
        reader,
        _,
    ):
        with pytest.raises(RequestsRejected) as raised:
            await reader.observe(requests("+1", "+1", "+1", "+1"))
    assert raised.value.indexes == (3,)


async def test_large_lists_go_in_chunks_of_so_many_requests_and_bytes() -> None:
    asked = requests(*["x" * 1000] * 7)
    for config in (ClientConfig(chunk_requests=3), ClientConfig(chunk_bytes=3600)):
        async with scripted(right, config=config) as (reader, script):
            assert await reader.observe(asked) == [observation(request) for request in asked]
        counts = [len(msgspec.json.decode(body)["requests"]) for body in script.bodies]
        assert counts == [3, 3, 1]


async def test_a_worker_that_takes_less_is_sent_less() -> None:
    engine = FakeEngine()
    asked = requests(*["+1"] * 5)
    async with worker(lambda: engine, WorkerConfig(body=BodyLimits(requests=2))) as url:
        reader = WorkerReader(url, QUICK)
        assert await reader.observe(asked) == [observation(request) for request in asked]
        await reader.close()


async def test_a_single_request_too_large_for_the_worker_is_rejected() -> None:
    async with worker(FakeEngine, WorkerConfig(body=BodyLimits(bytes=2000))) as url:
        reader = WorkerReader(url, QUICK)
        with pytest.raises(RequestsRejected, match="too large") as raised:
            await reader.observe(requests("+1", "+1", "x" * 3000))
        assert raised.value.indexes == (2,)
        await reader.close()


async def test_a_text_that_has_no_utf8_is_rejected_before_it_is_sent() -> None:
    async with scripted(right) as (reader, script):
        with pytest.raises(ReaderRejected) as raised:
            await reader.observe([observe_request("m-1"), observe_request("m-2", "\ud800")])
        assert raised.value.indexes == (1,)  # type: ignore[attr-defined]
        assert script.bodies == []


async def test_the_circuit_opens_spares_the_worker_and_closes_with_a_trial() -> None:
    registry = CollectorRegistry()
    config = ClientConfig(attempts=1, circuit=CircuitPolicy(failures=2, open_for=PATIENCE))
    answers = (status(503), status(503), right)
    async with scripted(*answers, config=config, metrics=ReaderMetrics(registry)) as (reader, script):
        for _ in range(2):
            with pytest.raises(ReaderUnavailable, match="503"):
                await reader.observe(requests("+1"))
        with pytest.raises(ReaderUnavailable, match="circuit is open") as raised:
            await reader.observe(requests("+1"))
        assert 0 < raised.value.retry_after <= PATIENCE
        assert len(script.bodies) == 2
        cooled(reader._guard)
        assert await reader.observe(requests("+1"))
        assert reader.circuit is Circuit.CLOSED
    assert registry.get_sample_value("volteface_reader_circuit_opened_total") == 1


async def test_a_cancelled_trial_does_not_leave_the_circuit_half_open() -> None:
    never, asked = asyncio.Event(), asyncio.Event()

    async def hang(_: bytes) -> web.Response:
        asked.set()
        await asyncio.wait_for(never.wait(), PATIENCE)
        return web.Response()

    config = ClientConfig(attempts=1, circuit=CircuitPolicy(failures=1, open_for=PATIENCE))
    async with scripted(status(503), hang, right, config=config) as (reader, _):
        with pytest.raises(ReaderUnavailable):
            await reader.observe(requests("+1"))
        cooled(reader._guard)
        trial = asyncio.ensure_future(reader.observe(requests("+1")))
        await asyncio.wait_for(asked.wait(), PATIENCE)
        assert reader.circuit is Circuit.HALF_OPEN
        trial.cancel()
        await asyncio.wait({trial})
        assert await reader.observe(requests("+1"))
        assert reader.circuit is Circuit.CLOSED
        never.set()


async def test_no_more_calls_at_once_than_connections() -> None:
    engine = FakeEngine()
    async with worker(lambda: engine) as url:
        reader = WorkerReader(url, ClientConfig(connections=2))
        calls = [asyncio.ensure_future(reader.observe(requests("block"))) for _ in range(2)]
        await eventually(engine.blocked.is_set)
        with pytest.raises(ReaderUnavailable, match="2 calls"):
            await reader.observe(requests("+1"))
        engine.open()
        await asyncio.gather(*calls)
        await reader.close()


async def test_a_cancelled_calls_answer_never_reaches_the_next() -> None:
    async with worker(FakeEngine) as url:
        reader = WorkerReader(url, ClientConfig(connections=4))
        for turn in range(60):
            call = asyncio.ensure_future(reader.observe([observe_request(f"cancelled-{turn}")]))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.0005 * (turn % 5)):
                    await asyncio.shield(call)
            call.cancel()
            asked = [observe_request(f"m-{turn}")]
            assert await reader.observe(asked) == [observation(request) for request in asked]
        await reader.close()


@pytest.mark.parametrize("closes", [(True, True, True), (False, False, True)])
def test_a_reader_made_at_import_serves_one_loop_after_the_other(closes: tuple[bool, ...]) -> None:
    port = free_port()
    reader = WorkerReader(f"http://127.0.0.1:{port}", QUICK)

    async def use(close: bool) -> None:
        async with worker(FakeEngine, WorkerConfig(port=port)):
            assert await reader.observe(requests("+1"))
            if close:
                await reader.close()

    for close in closes:
        asyncio.run(use(close))


async def test_a_reader_that_is_closed_is_unavailable() -> None:
    async with scripted(right) as (reader, _):
        await reader.observe(requests("+1"))
        await reader.close()
        with pytest.raises(ReaderUnavailable, match="closed"):
            await reader.observe(requests("+1"))
