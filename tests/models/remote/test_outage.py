"""A server that is away: how long it costs, when it is spared, and what is still asked of it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from models.circuit import Circuit, CircuitOpen
from models.execution import PROBE
from models.reader import ObserveRequest, ReaderRejected, ReaderUnavailable
from models.remote.asking import Way
from models.remote.client import RemoteClient
from models.remote.engine import RemoteEngine
from models.remote.forms import Unreadable
from models.remote.spent import CALLS
from tests import tcp
from tests.models.remote.conftest import Open
from tests.models.remote.faulty_server import OBSERVED, FaultyServer, completion, cut, refused
from tests.models.worker.fakes import PATIENCE, cooled

Ask = Callable[..., ObserveRequest]

SECONDS = 1.0
ONE_WAY = (Way(),)


@asynccontextmanager
async def silent() -> AsyncIterator[tuple[str, list[asyncio.StreamWriter]]]:
    """A server that takes every connection and never says a word; its address, and who came."""
    came: list[asyncio.StreamWriter] = []

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(writer)
        await asyncio.Event().wait()

    async with tcp.serving(say_nothing) as port:
        yield f"http://127.0.0.1:{port}/v1", came


async def test_a_server_that_never_answers_costs_one_calls_time_once(opened: Open, ask: Ask) -> None:
    async with silent() as (url, came):
        engine = RemoteEngine(opened(url, seconds=SECONDS, parallel=4))
        began = time.monotonic()
        with pytest.raises(ReaderUnavailable, match="no answer within"):
            await asyncio.to_thread(engine.observe, [ask("hm", str(turn)) for turn in range(40)])
        took = time.monotonic() - began
        assert SECONDS <= took < 5 * SECONDS, "not the tenfold: forty calls, four at once"
        assert 1 <= len(came) <= 8, "the next four may have begun in the moment in which all were ended"


async def test_a_server_that_drips_is_no_more_patiently_waited_for(opened: Open, ask: Ask) -> None:
    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:  # until it is hung up on
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with tcp.serving(drip) as port:
        url = f"http://127.0.0.1:{port}/v1"
        began = time.monotonic()
        with pytest.raises(ReaderUnavailable, match="no answer within"):
            await asyncio.to_thread(RemoteEngine(opened(url, seconds=SECONDS)).observe, [ask()])
        assert time.monotonic() - began < 5 * SECONDS


async def test_once_it_is_known_to_hang_nothing_is_waited_for(opened: Open, ask: Ask) -> None:
    async with silent() as (url, came):
        engine = RemoteEngine(opened(url, seconds=0.2, parallel=1, failures=2, open_for=PATIENCE))
        for _ in range(2):
            with pytest.raises(ReaderUnavailable, match="no answer within"):
                await asyncio.to_thread(engine.observe, [ask()])
        known = len(came)
        with pytest.raises(CircuitOpen) as raised:
            await asyncio.to_thread(engine.observe, [ask()])
        assert 0 < raised.value.retry_after <= PATIENCE
        assert len(came) == known


@pytest.fixture
def client(server: FaultyServer, opened: Open) -> RemoteClient:
    return opened(server.url, attempts=1, parallel=4, failures=2, open_for=PATIENCE)


@pytest.fixture
def engine(client: RemoteClient) -> RemoteEngine:
    return RemoteEngine(client, ways=ONE_WAY)


def fail(engine: RemoteEngine, ask: Ask, times: int = 2) -> None:
    for _ in range(times):
        with pytest.raises(ReaderUnavailable) as raised:
            engine.observe([ask()])
        assert not isinstance(raised.value, CircuitOpen)


@pytest.mark.parametrize("fault", [refused(500), refused(503), refused(429), cut, lambda _: (200, {}, b"{}")])
def test_absences_in_a_row_open_the_circuit(
    server: FaultyServer, client: RemoteClient, engine: RemoteEngine, ask: Ask, fault: Any
) -> None:
    server.default = fault
    fail(engine, ask)
    calls = len(server.calls)
    with pytest.raises(CircuitOpen):
        engine.observe([ask()])
    assert (client.circuit, len(server.calls)) == (Circuit.OPEN, calls)


def test_a_whole_batch_gets_through_where_its_trial_does(
    server: FaultyServer, client: RemoteClient, engine: RemoteEngine, ask: Ask
) -> None:
    server.default = refused(503)
    fail(engine, ask)
    cooled(client._guard)
    server.default, before = OBSERVED, len(server.calls)
    assert len(engine.observe([ask("hm", str(turn)) for turn in range(12)])) == 12
    assert (client.circuit, len(server.calls)) == (Circuit.CLOSED, before + 12)


def test_a_batch_asks_a_server_that_is_still_away_once(
    server: FaultyServer, client: RemoteClient, engine: RemoteEngine, ask: Ask
) -> None:
    server.default = refused(503)
    fail(engine, ask)
    cooled(client._guard)
    before = len(server.calls)
    with pytest.raises(ReaderUnavailable, match="503"):
        engine.observe([ask("hm", str(turn)) for turn in range(12)])
    assert (client.circuit, len(server.calls)) == (Circuit.OPEN, before + 1)


@pytest.mark.parametrize(
    ("status", "error"), [(400, ReaderRejected), (413, ReaderRejected), (500, Unreadable)]
)
def test_turns_that_it_minds_never_open_the_circuit_and_close_it_again(
    server: FaultyServer,
    client: RemoteClient,
    engine: RemoteEngine,
    ask: Ask,
    status: int,
    error: type[Exception],
) -> None:
    """A refusal, or a breakage on one turn beside a harmless call that is answered: the server is there."""
    minds = refused(status)
    server.default = lambda body: (
        minds(body) if "vile" in body["messages"][-1]["content"] else completion(OBSERVED)
    )
    for turn in range(5):
        with pytest.raises(error):
            engine.observe([ask("vile", str(turn))])
    assert client.circuit is Circuit.CLOSED
    usual, server.default = server.default, refused(503)
    fail(engine, ask)
    cooled(client._guard)
    server.default = usual
    with pytest.raises(error):
        engine.observe([ask("vile", "as a trial")])
    assert client.circuit is Circuit.CLOSED


@pytest.mark.parametrize("status", [401, 404, 400])
def test_a_server_that_refuses_every_call_is_there(
    server: FaultyServer, client: RemoteClient, engine: RemoteEngine, status: int
) -> None:
    server.default = refused(status)
    for _ in range(5):
        with pytest.raises(ReaderUnavailable, match="VOLTEFACE_REMOTE"):
            engine.observe([PROBE])
    assert client.circuit is Circuit.CLOSED


def test_a_quiet_that_was_asked_for_neither_opens_nor_closes(
    server: FaultyServer, client: RemoteClient, engine: RemoteEngine, ask: Ask
) -> None:
    server.default = refused(429, Retry_After="100")
    fail(engine, ask, times=4)  # one call, and three that were not made
    assert (client.circuit, len(server.calls)) == (Circuit.CLOSED, 1)


def test_how_calls_ended_is_counted(server: FaultyServer, opened: Open) -> None:
    client = opened(server.url, model="counted", attempts=1, seconds=0.3, parallel=1)
    server.answers = [
        OBSERVED,
        refused(429),
        refused(400),
        cut,
        lambda _: (200, {}, b'{"error": {"code": 429}}'),
    ]
    for _ in range(5):
        try:
            client.each([{}], client.complete)
        except ReaderUnavailable:
            continue
    counts = {
        sample.labels["ended"]: sample.value
        for metric in CALLS.collect()
        for sample in metric.samples
        if sample.name.endswith("_total") and sample.labels["model"] == "counted"
    }
    assert counts == {
        "answered": 1,
        "refused": 1,
        "limited": 2,
        "timed_out": 0,
        "failed": 1,
        "cancelled": 0,
    }
