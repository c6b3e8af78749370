"""A primary with a replica and a Sentinel that watches them, and a store that follows them."""

import asyncio
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from stream.embedded import EmbeddedRedis
from stream.embedded.server import Server
from stream.store.connection import connect, disconnect
from stream.store.port import StoreReplaced, StoreUnavailable
from stream.store.redis import RedisStore
from tests.stream.store.builders import commit, need


class EmbeddedSentinel(Server):
    """A Sentinel that watches one primary as `main`."""

    title: ClassVar[str] = "redis-sentinel"

    def __init__(self, binary: Path, primary: int) -> None:
        super().__init__()
        self._binary, self._primary = binary, primary

    def _prepare(self, folder: Path, port: int) -> Sequence[str]:
        config = folder / "sentinel.conf"
        config.write_text("\n".join(self._config(folder, port)))
        return [str(self._binary), str(config), "--sentinel"]

    def _config(self, folder: Path, port: int) -> Iterator[str]:
        yield f"port {port}"
        yield "bind 127.0.0.1"
        yield f"dir {folder}"
        yield f"sentinel monitor main 127.0.0.1 {self._primary} 1"
        yield "sentinel down-after-milliseconds main 300"
        yield "sentinel failover-timeout main 2000"

    def _answers(self, folder: Path, port: int) -> bool:
        with socket.create_connection(("127.0.0.1", port), 2.0) as connection:
            connection.settimeout(2.0)
            connection.sendall(b"PING\r\n")
            return connection.recv(7) == b"+PONG\r\n"


async def replicating(primary: EmbeddedRedis, replica: str, cafile: Path | None = None) -> None:
    """Make the server at the second address a replica, and wait until it has what the primary has."""
    client = connect(replica, timeout=2.0, pool=1, cafile=cafile)
    await client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
    try:
        for _ in range(200):
            if (await client.info("replication"))["master_link_status"] == "up":
                return
            await asyncio.sleep(0.05)
        pytest.fail("the replica did not sync")
    finally:
        await disconnect(client)


async def followed(primary: EmbeddedRedis, url: str, **options: Any) -> None:
    """A store goes on with the replica when its primary is killed."""
    store = RedisStore(url, "live", timeout=1.0, **options)
    try:
        async with asyncio.timeout(60):
            assert await _commit_when_possible(store, 0) == [True]
            await asyncio.sleep(1.0)  # replication is asynchronous, and Sentinel must have seen the replica
            primary.halt(kill=True)
            with pytest.raises(StoreUnavailable):
                await store.load([need()])
            assert await _commit_when_possible(store, 1) == [True]
        [loaded] = await store.load([need()])
        assert loaded.conversation.header.version == 2
    finally:
        await store.close()


async def _commit_when_possible(store: RedisStore, version: int) -> list[bool]:
    while True:
        try:
            return await store.commit([commit(version)])
        except StoreReplaced:
            store.accept()
        except StoreUnavailable:
            await asyncio.sleep(0.1)
