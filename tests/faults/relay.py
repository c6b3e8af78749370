"""A TCP line to a server on this machine that can be cut, slow, silent, or answered by somebody else."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests import tcp

PIECE_BYTES = 1 << 16
CLOSE_SECONDS = 5.0


class Relay:
    """Forwards TCP to a port; the flags may be changed at any time, and hold for open connections, too."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.delay = 0.0  # seconds that each piece of a reply is late
        self.silent = False  # connections stay open, and nothing comes back
        self.answer: bytes | None = None  # said in the server's place to whatever comes, then hung up
        self.port = 0
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def cut(self) -> None:
        """Break every open connection; new ones are taken."""
        for writer in self._connections.values():
            writer.transport.abort()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Relay"]:
        """Listens for as long as the block runs."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.cut()
            if self._connections:
                await asyncio.wait(self._connections, timeout=CLOSE_SECONDS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            with contextlib.suppress(OSError):
                await self._connected(reader, writer)
        finally:
            del self._connections[task]
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        await tcp.piped(back, self._forward(reader, back, writer), self._return(there, writer))

    async def _forward(
        self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, writer: asyncio.StreamWriter
    ) -> None:
        while piece := await reader.read(PIECE_BYTES):
            if self.answer is not None:
                writer.write(self.answer)
                await writer.drain()
                writer.write_eof()
                return
            back.write(piece)
            await back.drain()

    async def _return(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await there.read(PIECE_BYTES):
            if self.delay:
                await asyncio.sleep(self.delay)
            if not self.silent:
                writer.write(piece)
                await writer.drain()
