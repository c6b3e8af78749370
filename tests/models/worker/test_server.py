"""The worker's HTTP, against a real server in this process."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from models.worker.app import BodyLimits
from models.worker.batching import EngineStuck
from models.worker.lanes import BatchLimits
from models.worker.server import Worker, WorkerConfig, serve
from models.worker.wire import ExplainCall, ObserveAnswer, ObserveCall
from tests.models.worker.fakes import (
    PATIENCE,
    FakeEngine,
    eventually,
    explain_request,
    listening,
    observation,
    requests,
    until_ready,
    worker,
)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE)) as session:
        yield session


def call(*texts: str) -> bytes:
    return msgspec.json.encode(ObserveCall(requests(*texts)))


async def problem(
    http: aiohttp.ClientSession, url: str, body: bytes | None = None
) -> tuple[int, dict[str, Any], dict[str, str]]:
    async with http.request("GET" if body is None else "POST", url, data=body) as response:
        assert response.content_type == "application/problem+json"
        return response.status, await response.json(content_type=None), dict(response.headers)


async def depth_is(http: aiohttp.ClientSession, url: str, depth: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while f"volteface_worker_queue_depth {depth:.1f}" not in await text(http, f"{url}/metrics"):
            pass


async def text(http: aiohttp.ClientSession, url: str) -> str:
    async with http.get(url) as response:
        assert response.status == 200
        return await response.text()


async def test_a_call_is_answered_in_order(http: aiohttp.ClientSession) -> None:
    async with worker(FakeEngine) as url, http.post(f"{url}/v1/observe", data=call("+1", "-1")) as response:
        assert (response.status, response.content_type) == (200, "application/json")
        answer = msgspec.json.decode(await response.read(), type=ObserveAnswer)
    assert answer.observations == [observation(request) for request in requests("+1", "-1")]


async def test_alive_but_not_ready_while_the_engine_loads(http: aiohttp.ClientSession) -> None:
    gate = threading.Event()

    def factory() -> FakeEngine:
        assert gate.wait(PATIENCE)
        return FakeEngine()

    async with listening(factory) as url:
        assert await text(http, f"{url}/healthz")
        status, why, headers = await problem(http, f"{url}/readyz")
        assert (status, why["reason"]) == (503, "loading")
        status, why, headers = await problem(http, f"{url}/v1/observe", call("+1"))
        assert (status, why["reason"], headers["Retry-After"]) == (503, "loading", "2")
        gate.set()
        await until_ready(http, url)
        async with http.post(f"{url}/v1/observe", data=call("+1")) as response:
            assert response.status == 200


async def test_a_full_queue_is_503_with_retry_after_and_not_ready(http: aiohttp.ClientSession) -> None:
    engine = FakeEngine()
    config = WorkerConfig(batch=BatchLimits(queued=2), body=BodyLimits(requests=2))
    async with worker(lambda: engine, config) as url:
        first = asyncio.ensure_future(http.post(f"{url}/v1/observe", data=call("block")))
        await eventually(engine.blocked.is_set)
        second = asyncio.ensure_future(http.post(f"{url}/v1/observe", data=call("+1", "+1")))
        await depth_is(http, url, 2)
        status, why, headers = await problem(http, f"{url}/v1/observe", call("+1"))
        assert (status, why["reason"]) == (503, "queue_full")
        assert 1 <= int(headers["Retry-After"]) <= 30
        status, why, _ = await problem(http, f"{url}/readyz")
        assert (status, why["reason"]) == (503, "queue_full")
        engine.open()
        assert [response.status for response in await asyncio.gather(first, second)] == [200, 200]


async def test_a_client_that_hangs_up_frees_its_place(http: aiohttp.ClientSession) -> None:
    engine = FakeEngine()
    async with worker(lambda: engine) as url:
        first = asyncio.ensure_future(http.post(f"{url}/v1/observe", data=call("block")))
        await eventually(engine.blocked.is_set)
        gone = asyncio.ensure_future(http.post(f"{url}/v1/observe", data=call("+1")))
        await depth_is(http, url, 1)
        gone.cancel()
        await depth_is(http, url, 0)
        engine.open()
        assert (await first).status == 200
        metrics = await text(http, f"{url}/metrics")
    assert engine.batches == [["m-0"]]
    assert 'volteface_worker_dropped_total{kind="observe"} 1.0' in metrics
    assert 'volteface_worker_requests_total{route="/v1/observe",status="499"} 1.0' in metrics


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 400, "not_json"),
        (b"{", 400, "not_json"),
        (b'{"requests": [{"conversation": "\xff"}]}', 400, "not_json"),
        (b'{"more": ' + b"[" * 100_000, 400, "not_json"),
        (b"[]", 400, "invalid"),
        (b'{"requests": [{"turn": 3}]}', 400, "invalid"),
        (b" " * 300_000, 413, "too_large"),
        (call(*["+1"] * 9), 413, "too_large"),
        (call("+1", "bad"), 422, "rejected"),
        (call("boom"), 500, "engine_failed"),
        (call("gone"), 503, "engine_unavailable"),
    ],
    ids=lambda value: str(value)[:24],
)
async def test_what_is_not_answered_says_why(
    http: aiohttp.ClientSession, body: bytes, status: int, reason: str
) -> None:
    async with worker(FakeEngine, WorkerConfig(body=BodyLimits(bytes=200_000, requests=8))) as url:
        found, why, headers = await problem(http, f"{url}/v1/observe", body)
        assert (found, why["status"], why["reason"]) == (status, status, reason)
        assert ("Retry-After" in headers) == (status == 503)
        assert why.get("indexes") == ([1] if status == 422 else None)
        async with http.post(f"{url}/v1/observe", data=call("+1")) as response:
            assert response.status == 200


async def test_a_body_too_large_is_refused_though_its_size_was_not_told(http: aiohttp.ClientSession) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b" " * 1000

    config = WorkerConfig(body=BodyLimits(bytes=3000))
    async with worker(FakeEngine, config) as url, http.post(f"{url}/v1/observe", data=chunks()) as response:
        assert response.status == 413
        assert (await response.json(content_type=None))["reason"] == "too_large"


async def test_a_body_that_does_not_come_is_not_waited_for(http: aiohttp.ClientSession) -> None:
    async with worker(FakeEngine, WorkerConfig(body=BodyLimits(seconds=0.05))) as url:
        port = int(url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /v1/observe HTTP/1.1\r\nHost: w\r\nContent-Length: 100\r\n\r\n{")
        async with asyncio.timeout(PATIENCE):
            assert (await reader.readline()).startswith(b"HTTP/1.1 408")
        writer.close()
        await writer.wait_closed()


async def test_other_paths_and_methods_are_problems_too(http: aiohttp.ClientSession) -> None:
    async with worker(FakeEngine) as url:
        assert (await problem(http, f"{url}/nowhere"))[1]["reason"] == "not_found"
        assert (await problem(http, f"{url}/v1/observe"))[1]["reason"] == "method_not_allowed"


async def test_a_slow_engine_is_504_then_stuck(http: aiohttp.ClientSession) -> None:
    engine = FakeEngine()
    config = WorkerConfig(batch=BatchLimits(timeout=0.05, stuck_after=0.1))
    async with worker(lambda: engine, config) as url:
        while not engine.blocked.is_set():  # a call's time may be over before the engine begins with it
            status, why, _ = await problem(http, f"{url}/v1/observe", call("block"))
            assert (status, why["reason"]) == (504, "timed_out")
        await until_ready(http, url, ready=False)
        assert (await problem(http, f"{url}/readyz"))[1]["reason"] == "stuck"
        assert (await problem(http, f"{url}/v1/observe", call("+1")))[0] == 503
        assert await text(http, f"{url}/healthz")
        engine.open()
        await until_ready(http, url)


async def test_the_metrics_say_what_was_done(http: aiohttp.ClientSession) -> None:
    async with worker(FakeEngine) as url:
        await http.post(f"{url}/v1/observe", data=call("12345", "123"))
        body = msgspec.json.encode(ExplainCall([explain_request("m-1")]))
        assert (await http.post(f"{url}/v1/explain", data=body)).status == 200
        await http.post(f"{url}/v1/observe", data=b"{")
        metrics = await text(http, f"{url}/metrics")
    for line in (
        'volteface_worker_requests_total{route="/v1/observe",status="200"} 1.0',
        'volteface_worker_requests_total{route="/v1/observe",status="400"} 1.0',
        'volteface_worker_requests_total{route="/v1/explain",status="200"} 1.0',
        "volteface_worker_queue_depth 0.0",
        'volteface_worker_batch_requests_sum{kind="observe"} 2.0',
        'volteface_worker_batch_tokens_sum{kind="observe"} 8.0',
        'volteface_worker_batch_requests_count{kind="explain"} 1.0',
        'volteface_worker_seconds_count{stage="decode"} 3.0',
        'volteface_worker_seconds_count{stage="queue"} 3.0',
        'volteface_worker_seconds_count{stage="engine"} 2.0',
        'volteface_worker_seconds_count{stage="encode"} 2.0',
        'volteface_worker_seconds_count{stage="call"} 3.0',
        'volteface_worker_engine_info{engine="FakeEngine",language="en",name="fake",revision="1"} 1.0',
    ):
        assert line in metrics


async def test_an_unforeseen_fault_is_a_problem_and_quotes_nothing(
    http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Worker) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(Worker, "_ready", broken)
    async with worker(FakeEngine) as url:
        status, why, _ = await problem(http, f"{url}/v1/observe", call("+1"))
    assert (status, why["reason"], why["detail"]) == (500, "internal", "KeyError")


async def test_an_engine_that_does_not_load_ends_the_worker() -> None:
    def factory() -> FakeEngine:
        raise OSError("no weights")

    with pytest.raises(OSError, match="no weights"):
        await serve(factory, WorkerConfig(), stop=asyncio.Event())


async def test_a_worker_may_be_stopped_while_its_engine_loads() -> None:
    gate, stop = threading.Event(), asyncio.Event()
    loading = threading.Event()

    def factory() -> FakeEngine:
        loading.set()
        assert gate.wait(PATIENCE)
        return FakeEngine()

    serving = asyncio.ensure_future(serve(factory, WorkerConfig(), stop=stop))
    await eventually(loading.is_set)
    stop.set()
    assert await asyncio.wait_for(serving, PATIENCE)
    gate.set()


async def test_an_engine_that_hangs_ends_the_worker() -> None:
    engine, stop = FakeEngine(), asyncio.Event()
    config = WorkerConfig(batch=BatchLimits(stuck_after=0.02, give_up_after=0.1))
    port = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve(lambda: engine, config, stop=stop, on_listening=port.set_result))
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PATIENCE)) as http:
        url = f"http://127.0.0.1:{await asyncio.wait_for(port, PATIENCE)}"
        await until_ready(http, url)
        asked = asyncio.ensure_future(http.post(f"{url}/v1/observe", data=call("block")))
        with pytest.raises(EngineStuck):
            await asyncio.wait_for(serving, PATIENCE)
        engine.open()
        assert (await asyncio.wait_for(asked, PATIENCE)).status == 503


async def test_a_port_that_is_taken_is_said(http: aiohttp.ClientSession) -> None:
    async with worker(FakeEngine) as url:
        taken = WorkerConfig(port=int(url.rpartition(":")[2]))
        with pytest.raises(OSError, match="in use"):
            await serve(FakeEngine, taken, stop=asyncio.Event())


def test_limits_under_which_a_call_could_never_be_queued_are_refused() -> None:
    with pytest.raises(ValueError, match="queue"):
        WorkerConfig(batch=BatchLimits(queued=4), body=BodyLimits(requests=5))
