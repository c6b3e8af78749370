"""The relay does to a line what its flags say."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests import tcp
from tests.faults.relay import Relay

SECONDS = 30.0
SILENCE_SECONDS = 0.2


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while said := await reader.read(100):
        writer.write(said)


@pytest.fixture
async def relay() -> AsyncIterator[Relay]:
    async with tcp.serving(echo) as port, Relay(port).running() as running:
        yield running


@pytest.fixture
async def line(relay: Relay) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
    writer.write(b"before")
    assert await asyncio.wait_for(reader.readexactly(6), SECONDS) == b"before"
    yield reader, writer
    writer.transport.abort()


Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def test_a_cut_breaks_the_open_line_and_takes_the_next(relay: Relay, line: Line) -> None:
    relay.cut()
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(line[0].readexactly(1), SECONDS)
    reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
    writer.write(b"after")
    assert await asyncio.wait_for(reader.readexactly(5), SECONDS) == b"after"
    writer.transport.abort()


async def test_a_silent_line_stays_open_and_loses_what_is_said(relay: Relay, line: Line) -> None:
    reader, writer = line
    relay.silent = True
    writer.write(b"lost")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1), SILENCE_SECONDS)
    relay.silent = False
    writer.write(b"x")
    assert (await asyncio.wait_for(reader.read(1), SECONDS)) in (b"x", b"l")  # perhaps it was only slow


async def test_somebody_else_answers_and_hangs_up(relay: Relay, line: Line) -> None:
    reader, writer = line
    relay.answer = b"no"
    writer.write(b"question")
    assert await asyncio.wait_for(reader.read(), SECONDS) == b"no"


async def test_a_slow_line_answers_late(relay: Relay, line: Line) -> None:
    reader, writer = line
    relay.delay = SILENCE_SECONDS
    began = asyncio.get_running_loop().time()
    writer.write(b"x")
    assert await asyncio.wait_for(reader.read(1), SECONDS) == b"x"
    assert asyncio.get_running_loop().time() - began >= SILENCE_SECONDS
