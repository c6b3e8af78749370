"""From an address to a Redis client that never waits long: redis://, rediss:// and redis+sentinel://."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import structlog
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from stream.addresses import check_redis

log = structlog.get_logger(__name__)

SENTINEL_PORT = 26379


class SentinelAddress(msgspec.Struct, frozen=True, kw_only=True):
    """What a redis+sentinel:// address says."""

    nodes: tuple[tuple[str, int], ...]
    service: str
    server: dict[str, Any]  # how to connect to Redis itself: db, username, password
    sentinel: dict[str, str]  # how to connect to the Sentinels: username, password


def parse_sentinel(url: str) -> SentinelAddress:
    """The parts of `redis+sentinel://[user:password@]host:port,host:port/service[/db]`.

    The Sentinels' own credentials, if they have any, stand in the query: sentinel_username,
    sentinel_password.
    """
    parts = urlsplit(url)
    hosts = (urlsplit(f"//{host}") for host in parts.netloc.rpartition("@")[2].split(","))
    service, _, db = parts.path.strip("/").partition("/")
    given = {"username": parts.username, "password": parts.password}
    query = parse_qs(parts.query)
    own = {name: query.get(f"sentinel_{name}", [None])[0] for name in ("username", "password")}
    return SentinelAddress(
        nodes=tuple((host.hostname or "", host.port or SENTINEL_PORT) for host in hosts),
        service=unquote(service),
        server={"db": int(db or 0), **{name: unquote(text) for name, text in given.items() if text}},
        sentinel={name: text for name, text in own.items() if text},
    )


def connect(url: str, *, timeout: float, pool: int, cafile: Path | None = None) -> Redis:
    """A client of at most `pool` connections; each connect, write and read has half of `timeout`.

    It retries nothing by itself, and what the address's query says never overrides that. Call it in the
    event loop that will use it; it connects at the first command. Raises BadAddress.
    """
    check_redis(url)
    options = _options(timeout, pool)
    if url.startswith("redis+sentinel:"):
        return _through_sentinel(parse_sentinel(url), options)
    if cafile is not None and url.startswith("rediss:"):
        options["ssl_ca_certs"] = str(cafile)
    given: dict[str, Any] = {**parse_url(url), **options}
    return Redis.from_pool(ConnectionPool(**given))


def _options(timeout: float, pool: int) -> dict[str, Any]:
    # redis-py's own defaults are ten retries and five seconds each: one call could stall a partition.
    return {
        "socket_timeout": timeout / 2,
        "socket_connect_timeout": timeout / 2,
        "retry": Retry(NoBackoff(), 0),
        "max_connections": pool,
        "decode_responses": False,
        "protocol": 2,
        "driver_info": None,  # two commands less before the first of ours
        "redis_connect_func": _introduce,
    }


async def _introduce(connection: Any) -> None:
    """What redis-py does with a new connection, and asking which server it leads to: see `server_of`."""
    await connection.on_connect()
    sections = ("server", "replication")
    for section in sections:
        await connection.send_command("INFO", section)
    replies = [await _reply(connection) for _ in sections]
    lines = dict(line.split(b":", 1) for reply in replies for line in reply.splitlines() if b":" in line)
    known = b"/".join(lines[name] for name in (b"run_id", b"master_replid") if name in lines)
    if not known:
        log.warning("store.unidentified", remedy="allow INFO: without it no failover is noticed")
    connection.volteface_server = known.decode() or f"{connection.host}:{connection.port}"


async def _reply(connection: Any) -> bytes:
    """Empty where the command is forbidden or renamed."""
    try:
        reply: bytes = await connection.read_response()
    except ResponseError:
        return b""
    return reply


def server_of(connection: Any) -> str:
    """Which server a connection leads to: another one after every start, and after every promotion."""
    found: str = connection.volteface_server
    return found


def _through_sentinel(address: SentinelAddress, options: dict[str, Any]) -> Redis:
    watchers = {**options, **address.sentinel}
    sentinel = Sentinel(address.nodes, sentinel_kwargs=watchers)  # type: ignore[no-untyped-call]
    client: Redis = sentinel.master_for(address.service, **options, **address.server)
    return client


async def disconnect(client: Redis) -> None:
    """Close the client and, where there are any, its connections to Sentinels."""
    pool = client.connection_pool
    await client.aclose()
    if isinstance(pool, SentinelConnectionPool):
        await pool.sentinel_manager.aclose()
