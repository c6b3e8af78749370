"""Commands to Redis and their replies: one write, one read, never long, never another caller's replies."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.exceptions import TimeoutError as ReplyLost

from stream.store.codec import Argument, Misread
from stream.store.connection import disconnect, server_of
from stream.store.port import StoreReplaced, StoreUnavailable

Command = Sequence[Argument]


class Servers:
    """Which server is taken to hold all that was committed; the first one that answers is."""

    def __init__(self) -> None:
        self._trusted: str | None = None
        self._found: str | None = None  # the last one that was not

    async def check(self, connection: Any) -> None:
        """Raise StoreReplaced where a connection, made anew if it is an old one, leads to another server."""
        if self._trusted is None:
            self._trusted = server_of(connection)
        if server_of(connection) == self._trusted:
            return
        await connection.disconnect(nowait=True)
        await connection.connect()
        if server_of(connection) != self._trusted:
            self._found = server_of(connection)
            raise StoreReplaced("Redis: another server answers than before, or it was started anew")

    def accept(self) -> None:
        """Take the server that was found last for the one that holds everything."""
        self._trusted = self._found or self._trusted


_Result = TypeVar("_Result")


class Exchange:
    """What one event loop says to Redis; at most `size` calls at a time, the others wait their turn."""

    def __init__(self, client: Redis, timeout: float, size: int, servers: Servers) -> None:
        self._client, self._servers = client, servers
        self._pool: Any = client.connection_pool
        self._timeout = timeout
        self._places = asyncio.Semaphore(size)

    async def run(self, commands: Sequence[Command], read: Callable[[list[object]], _Result]) -> _Result:
        """What `read` makes of the replies, of which only NoScriptError may be an error; one round trip.

        Commands are run twice where a reply was lost. Raises StoreUnavailable within the timeout.
        """
        if not commands:
            return read([])
        call = _Call(commands, read)
        try:
            async with asyncio.timeout(self._timeout), self._places:
                return await self._persistently(call)
        except (RedisError, OSError, Misread) as error:
            reason = str(error) or f"no answer in {self._timeout:g} s"
            raise StoreUnavailable(f"Redis: {type(error).__name__}: {reason}") from error

    async def close(self) -> None:
        """Close all connections."""
        try:
            async with asyncio.timeout(self._timeout):
                await disconnect(self._client)
        except (RedisError, OSError):
            return  # a server that does not answer holds nothing of ours either

    async def _persistently(self, call: "_Call[_Result]") -> _Result:
        try:
            return await self._once(call)
        except (ConnectionLost, ReplyLost):
            call.heed_cancellation()
            return await self._once(call)

    async def _once(self, call: "_Call[_Result]") -> _Result:
        connection = await self._pool.get_connection()
        try:
            call.heed_cancellation()
            await self._servers.check(connection)
            call.heed_cancellation()
            return await call.on(connection)
        except BaseException:
            # After a cancellation replies are still to come, and they must never answer the next caller.
            # After a refusal such as READONLY only a new connection may find the new primary.
            await connection.disconnect(nowait=True)
            raise
        finally:
            await self._pool.release(connection)


class _Call(Generic[_Result]):
    """Commands, and what is to be made of their replies."""

    def __init__(self, commands: Sequence[Command], read: Callable[[list[object]], _Result]) -> None:
        self._commands, self._read = commands, read
        self._cancellations = _cancellations()

    async def on(self, connection: Any) -> _Result:
        await connection.send_packed_command(connection.pack_commands(self._commands))
        self.heed_cancellation()
        replies = [await _reply(connection) for _ in self._commands]
        for reply in replies:
            if isinstance(reply, ResponseError) and not isinstance(reply, NoScriptError):
                raise reply
        return self._read(replies)

    def heed_cancellation(self) -> None:
        """Raise the CancelledError that was swallowed, if one was.

        redis-py writes through asyncio.wait_for, which until Python 3.12 swallows a cancellation that comes
        as it ends: the call would then go on past its timeout, or past its caller's end.
        """
        if _cancellations() > self._cancellations:
            raise asyncio.CancelledError


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else 0


async def _reply(connection: Any) -> object:
    try:
        reply: object = await connection.read_response()
    except ResponseError as error:
        return error
    return reply
