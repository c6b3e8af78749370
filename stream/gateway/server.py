"""The gateway's life: listen, serve, and on the way out let subscribers go with a last word."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import structlog
import uvicorn

from stream.gateway.app import served
from stream.gateway.parts import Parts

log = structlog.get_logger(__name__)

BACKLOG = 2048
GRACE_SECONDS = 5
KEEP_ALIVE_SECONDS = 65  # above the 60 after which balancers close: they must be first


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take none."""
        yield


def listening(host: str, port: int, stuck: float) -> socket.socket:
    """A socket that listens; 0 takes a free port. Raises OSError.

    A peer that takes nothing for `stuck` seconds is cut off by the system, where it knows how (Linux): a
    subscriber that went without a word, or stopped reading, holds no memory for ever.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(stuck * 1000))
    return listener


async def serve(
    parts: Parts,
    host: str,
    port: int,
    *,
    stop: asyncio.Event,
    on_listening: Callable[[int], None] | None = None,
) -> None:
    """Serve until `stop`. Raises OSError where nothing can listen there, and what ends a part before."""
    listener = listening(host, port, parts.limits.stuck)
    config = uvicorn.Config(
        served(parts),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Server(config)
    async with _running(parts) as background:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        stopping = asyncio.create_task(stop.wait())
        port = listener.getsockname()[1]
        log.info("gateway.listening", host=host, port=port)
        if on_listening:
            on_listening(port)
        try:
            await asyncio.wait({serving, stopping, *background}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            log.info("gateway.closing", streams=parts.streams.total())
            parts.tails.close()
            server.should_exit = True
            stopping.cancel()
            await asyncio.wait({serving, stopping})
            listener.close()
        for ended in (serving, *background):
            if ended.done():
                ended.result()


@asynccontextmanager
async def _running(parts: Parts) -> AsyncIterator[set[asyncio.Task[None]]]:
    """What works beside the requests."""
    tasks = {asyncio.create_task(parts.log.run()), asyncio.create_task(parts.tails.run())}
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
