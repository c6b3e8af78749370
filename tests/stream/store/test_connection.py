"""Addresses of Redis, and the clients they become."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.asyncio.connection import SSLConnection
from redis.asyncio.sentinel import SentinelConnectionPool

from stream.addresses import BadAddress
from stream.embedded import EmbeddedRedis, find_redis_servers
from stream.store.connection import SentinelAddress, connect, disconnect, parse_sentinel
from tests.stream.store.sentinels import EmbeddedSentinel, followed, replicating


@pytest.mark.parametrize(
    ("url", "address"),
    [
        (
            "redis+sentinel://h1:1,h2:2/main/3",
            SentinelAddress(nodes=(("h1", 1), ("h2", 2)), service="main", server={"db": 3}, sentinel={}),
        ),
        (
            "redis+sentinel://h1,h2:2/main",
            SentinelAddress(nodes=(("h1", 26379), ("h2", 2)), service="main", server={"db": 0}, sentinel={}),
        ),
        (
            "redis+sentinel://u%40:p%2Fw@h1:1/my%20main/0?sentinel_username=s&sentinel_password=q%26",
            SentinelAddress(
                nodes=(("h1", 1),),
                service="my main",
                server={"db": 0, "username": "u@", "password": "p/w"},
                sentinel={"username": "s", "password": "q&"},
            ),
        ),
        (
            "rediss+sentinel://h1:1/main?ssl_certfile=/c.pem&ssl_keyfile=/c.key",
            SentinelAddress(
                nodes=(("h1", 1),),
                service="main",
                server={"db": 0},
                sentinel={},
                tls={"ssl": True, "ssl_certfile": "/c.pem", "ssl_keyfile": "/c.key"},
            ),
        ),
        (
            "redis+sentinel://:secret@[::1]:1/main/",
            SentinelAddress(
                nodes=(("::1", 1),), service="main", server={"db": 0, "password": "secret"}, sentinel={}
            ),
        ),
    ],
)
def test_a_sentinel_address(url: str, address: SentinelAddress) -> None:
    assert parse_sentinel(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "", "localhost", "http://h:1/0", "redis://a,b/0", "redis+sentinel://h:1", "redis://:hush@h:x/0",
        "rediss://u:hu/hush@h:1/0", "rediss://u:hu#hush@h:1/0", "rediss://u:hu?hush@h:1/0",
    ],
)  # fmt: skip
async def test_what_is_no_address(url: str) -> None:
    with pytest.raises(BadAddress) as refusal:
        connect(url, timeout=1.0, pool=1)
    assert "hush" not in str(refusal.value)


async def test_the_address_decides_where_and_we_decide_how_long() -> None:
    url = "rediss://u:p%40@h:7/2?socket_timeout=99&decode_responses=yes&max_connections=500"
    client = connect(url, timeout=1.0, pool=3, cafile=Path("/ca.pem"))
    pool = client.connection_pool
    given = pool.connection_kwargs
    assert (given["host"], given["port"], given["db"], given["password"]) == ("h", 7, 2, "p@")
    assert (given["socket_timeout"], given["socket_connect_timeout"]) == (0.5, 0.5)
    assert (given["retry"].get_retries(), given["decode_responses"]) == (0, False)
    assert (pool.max_connections, pool.connection_class) == (3, SSLConnection)
    assert given["ssl_ca_certs"] == "/ca.pem"


async def test_sentinels_are_asked_with_the_same_patience() -> None:
    client = connect("redis+sentinel://h1:1,h2:2/main/3", timeout=1.0, pool=3)
    pool = client.connection_pool
    assert isinstance(pool, SentinelConnectionPool)
    assert (pool.service_name, pool.max_connections, pool.connection_kwargs["db"]) == ("main", 3, 3)
    for sentinel in pool.sentinel_manager.sentinels:
        options = sentinel.connection_pool.connection_kwargs
        assert (options["socket_timeout"], options["retry"].get_retries()) == (0.5, 0)
    await disconnect(client)


async def test_a_plain_address_connects(redis_url: str) -> None:
    client = connect(redis_url, timeout=2.0, pool=1)
    assert await client.ping()
    await disconnect(client)


@pytest.fixture(params=find_redis_servers(), ids=lambda path: path.parent.parent.name)
def failing_over(request: pytest.FixtureRequest) -> Iterator[tuple[EmbeddedRedis, EmbeddedSentinel]]:
    """A primary with a replica, and a Sentinel that watches them."""
    binary = request.param
    with EmbeddedRedis(binary=binary) as primary, EmbeddedRedis(binary=binary) as replica:
        asyncio.run(replicating(primary, replica.url))
        with EmbeddedSentinel(binary, primary.port) as sentinel:
            yield primary, sentinel


def test_a_store_follows_the_primary(failing_over: tuple[EmbeddedRedis, EmbeddedSentinel]) -> None:
    primary, sentinel = failing_over
    asyncio.run(followed(primary, f"redis+sentinel://127.0.0.1:{sentinel.port}/main/0"))
