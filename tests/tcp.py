"""A TCP server in the test's own loop that leaves no connection half closed behind it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

CLOSE_SECONDS = 5.0

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@contextlib.asynccontextmanager
async def serving(handle: Handler) -> AsyncIterator[int]:
    """Serves on a free port, which it yields; at the end every connection is closed, not only closing.

    `asyncio.Server` waits for none of its connections (before Python 3.12 at least), and what the loop then
    leaves open is a warning in whichever test the garbage collector meets it.
    """
    handling: set[asyncio.Task[None]] = set()
    connected: set[asyncio.Task[None]] = set()

    async def connection(at_work: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        await asyncio.wait([at_work])
        handling.discard(at_work)
        await _closed(writer)
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):  # hung up on, or at the end
            at_work.result()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at_work = asyncio.ensure_future(handle(reader, writer))
        handling.add(at_work)
        connected.add(asyncio.ensure_future(connection(at_work, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        while connected:  # one may have been accepted until now
            for task in handling:
                task.cancel()
            await connected.pop()  # raises what its handler raised


async def piped(back: asyncio.StreamWriter, *pumps: Coroutine[Any, Any, None]) -> None:
    """Run the pumps of a line to another server until one ends; then end the others and break the line."""
    running = {asyncio.ensure_future(pump) for pump in pumps}
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        back.transport.abort()
        for pump in running:
            pump.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Closed, with what was written sent; without, where the other end takes nothing."""
    writer.close()
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await writer.wait_closed()
    except TimeoutError:
        writer.transport.abort()
    except OSError:
        pass  # it is closed all the same
