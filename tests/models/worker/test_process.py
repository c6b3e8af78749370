"""A worker in a process of its own: how it ends, and what its clients see when it dies."""

import asyncio
import re
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest

from models.circuit import Circuit, CircuitPolicy
from models.reader import ReaderUnavailable
from models.worker.client import ClientConfig, WorkerReader
from models.worker.wire import ObserveCall
from tests.models.worker.fakes import PATIENCE, cooled, free_port, observation, requests

ROOT = Path(__file__).parents[3]
STARTS = 90.0


@asynccontextmanager
async def process(port: int = 0, grace: float = 10.0) -> AsyncIterator[tuple[Process, str]]:
    """A worker process that is ready, and its address."""
    command = [sys.executable, "-m", "tests.models.worker.served", str(port), str(grace)]
    started = await create_subprocess_exec(*command, cwd=ROOT, stdout=PIPE, stderr=STDOUT)
    try:
        listening = await printed(started, r"port (\d+)")
        await printed(started, r"worker\.ready")
        yield started, f"http://127.0.0.1:{listening[1]}"
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


async def printed(started: Process, pattern: str) -> re.Match[str]:
    assert started.stdout is not None
    async with asyncio.timeout(STARTS):
        while line := await started.stdout.readline():
            if found := re.search(pattern, line.decode()):
                return found
    raise AssertionError(f"the worker ended without {pattern}")


async def test_sigterm_answers_what_is_queued_and_ends_with_0(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    body = msgspec.json.encode(ObserveCall(requests(f"until {gate}")))
    async with process() as (started, url), aiohttp.ClientSession() as http:
        asked = asyncio.ensure_future(http.post(f"{url}/v1/observe", data=body))
        await printed(started, "reading")
        started.send_signal(signal.SIGTERM)
        await printed(started, r"worker\.draining")
        for refused in (http.get(f"{url}/readyz"), http.post(f"{url}/v1/observe", data=body)):
            async with refused as response:
                assert response.status == 503
                assert (await response.json(content_type=None))["reason"] == "draining"
        gate.touch()
        assert (await asyncio.wait_for(asked, PATIENCE)).status == 200
        assert await asyncio.wait_for(started.wait(), PATIENCE) == 0


async def test_an_engine_that_hangs_does_not_keep_the_process(tmp_path: Path) -> None:
    async with process(grace=0.1) as (started, url), aiohttp.ClientSession() as http:
        body = msgspec.json.encode(ObserveCall(requests(f"until {tmp_path / 'never'}")))
        asked = asyncio.ensure_future(http.post(f"{url}/v1/observe", data=body))
        await printed(started, "reading")
        started.send_signal(signal.SIGTERM)
        assert (await asyncio.wait_for(asked, PATIENCE)).status == 503
        assert await asyncio.wait_for(started.wait(), PATIENCE) == 1


async def test_a_worker_killed_in_the_middle_of_a_call_and_started_anew_answers_that_call(
    tmp_path: Path,
) -> None:
    gate, port = tmp_path / "gate", free_port()
    config = ClientConfig(
        attempts=1000, backoff=0.05, backoff_cap=0.1, timeout=STARTS, circuit=CircuitPolicy(failures=1000)
    )
    reader = WorkerReader(f"http://127.0.0.1:{port}", config)
    asked = requests(f"until {gate}", "+1")
    async with process(port) as (first, _):
        call = asyncio.ensure_future(reader.observe(asked))
        await printed(first, "reading")
        first.kill()
        await first.wait()
        assert not call.done()
    gate.touch()
    async with process(port):
        assert await call == [observation(request) for request in asked]
    await reader.close()


async def test_while_a_worker_is_dead_the_circuit_opens_and_closes_once_it_is_back() -> None:
    port = free_port()
    config = ClientConfig(attempts=1, circuit=CircuitPolicy(failures=2, open_for=PATIENCE))
    reader = WorkerReader(f"http://127.0.0.1:{port}", config)
    async with process(port):
        await reader.observe(requests("+1"))
    for _ in range(2):
        with pytest.raises(ReaderUnavailable):
            await reader.observe(requests("+1"))
    assert reader.circuit is Circuit.OPEN
    with pytest.raises(ReaderUnavailable, match="circuit"):
        await reader.observe(requests("+1"))
    async with process(port):
        cooled(reader._guard)
        assert await reader.observe(requests("+1"))
    assert reader.circuit is Circuit.CLOSED
    await reader.close()
