"""Redis and its Sentinels, all of them with TLS and passwords: the store follows the primary."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from stream.embedded import find_redis_servers
from stream.store.port import StoreUnavailable
from stream.store.redis import RedisStore
from tests.secured.authority import Authority
from tests.secured.conftest import tls_redis
from tests.secured.redis_server import PASSWORD, USER, WATCHER, SecuredRedis, connected
from tests.stream.store.builders import need
from tests.stream.store.sentinels import EmbeddedSentinel, followed, replicating

PATIENCE_SECONDS = 2.0
OWN_PASSWORD = "hush-sentinel"


class Replicated(SecuredRedis):
    """Its own replication speaks TLS and has a password, too."""

    def _config(self, data: Path, port: int) -> Iterator[str]:
        yield from super()._config(data, port)
        yield "tls-replication yes"
        yield f"masteruser {WATCHER}"
        yield f"masterauth {PASSWORD}"


class SecuredSentinel(EmbeddedSentinel):
    """Listens with TLS alone, has a password of its own, and shows it no server but its own."""

    def __init__(self, binary: Path, primary: SecuredRedis, authority: Authority) -> None:
        super().__init__(binary, primary.port)
        self._authority, self._issued = authority, authority.issue("sentinel", "127.0.0.1")

    def _config(self, folder: Path, port: int) -> Iterator[str]:
        yield from (line for line in super()._config(folder, port) if not line.startswith("port "))
        yield "port 0"
        yield f"tls-port {port}"
        yield f"tls-cert-file {self._issued.certfile}"
        yield f"tls-key-file {self._issued.keyfile}"
        yield f"tls-ca-cert-file {self._authority.cafile}"
        yield "tls-auth-clients no"
        yield "tls-replication yes"
        yield f"requirepass {OWN_PASSWORD}"
        yield f"sentinel auth-user main {WATCHER}"
        yield f"sentinel auth-pass main {PASSWORD}"

    def _answers(self, folder: Path, port: int) -> bool:
        with (
            connected(self._authority, self._issued, port) as connection,
            connection.makefile("rb") as stream,
        ):
            connection.sendall(f"AUTH {OWN_PASSWORD}\r\nPING\r\n".encode())
            return [stream.readline(), stream.readline()] == [b"+OK\r\n", b"+PONG\r\n"]


@pytest.fixture
def failing_over(authority: Authority) -> Iterator[tuple[SecuredRedis, SecuredSentinel]]:
    """A primary with a replica, and a Sentinel that watches them."""
    with tls_redis(Replicated(authority)) as primary, tls_redis(Replicated(authority)) as replica:
        asyncio.run(replicating(primary, replica.as_user(WATCHER), authority.cafile))
        with SecuredSentinel(find_redis_servers()[0], primary, authority) as sentinel:
            yield primary, sentinel


def test_a_store_follows_the_primary_over_tls(
    failing_over: tuple[SecuredRedis, SecuredSentinel], authority: Authority, prefix: str
) -> None:
    primary, sentinel = failing_over
    user, hosts = f"{USER}:{quote(PASSWORD, safe='')}", f"127.0.0.1:{sentinel.port}"
    url = f"rediss+sentinel://{user}@{hosts}/main/1?sentinel_password={OWN_PASSWORD}"
    asyncio.run(followed(primary, url, prefix=prefix, cafile=authority.cafile))


async def test_sentinels_of_another_authority_are_not_believed(
    failing_over: tuple[SecuredRedis, SecuredSentinel], tmp_path: Path
) -> None:
    _, sentinel = failing_over
    store = RedisStore(
        f"rediss+sentinel://127.0.0.1:{sentinel.port}/main/1?sentinel_password={OWN_PASSWORD}",
        "live",
        timeout=PATIENCE_SECONDS,
        cafile=Authority(tmp_path).cafile,
    )
    with pytest.raises(StoreUnavailable, match=r"no Sentinel names a primary.* VOLTEFACE_REDIS_CAFILE"):
        await store.load([need()])
    await store.close()
