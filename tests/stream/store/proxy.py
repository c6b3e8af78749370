"""A line to a server that can be slow, or lose replies."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Proxy:
    """Forwards TCP; the flags may be changed at any time."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.delay = 0.0  # seconds each reply is late
        self.cut = 0  # how many replies are lost, each with its connection
        self.connections = 0

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        pumps = [asyncio.ensure_future(self._forward(reader, back))]
        pumps.append(asyncio.ensure_future(self._return(there, writer)))
        self._tasks.update(pumps)
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        for stream in (writer, back):
            stream.close()
            with contextlib.suppress(OSError):
                await stream.wait_closed()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()

    async def _return(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            if self.delay:
                await asyncio.sleep(self.delay)
            if self.cut and not data.startswith((b"+OK", b"-ERR unknown")):  # the handshake's replies pass
                self.cut -= 1
                return
            writer.write(data)
            await writer.drain()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield self
        finally:
            self._server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
