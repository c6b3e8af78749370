"""A line to a server that can be slow, or lose replies."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests import tcp


class Proxy:
    """Forwards TCP; the flags may be changed at any time."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening: int | None = None
        self.delay = 0.0  # seconds each reply is late
        self.cut = 0  # how many replies are lost, each with its connection
        self.connections = 0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._listening}/0"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        await tcp.piped(back, self._forward(reader, back), self._return(there, writer))

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
        async with tcp.serving(self._serve) as self._listening:
            yield self
