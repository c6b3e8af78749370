"""From address to client, which never waits long: redis:// and redis+sentinel://, rediss: over TLS."""

import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import structlog
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterCrossSlotError,
    ClusterDownError,
    NoPermissionError,
    RedisError,
    ResponseError,
)

from stream.addresses import check_redis

log = structlog.get_logger(__name__)

SENTINEL_PORT = 26379
REMEDY = " -> "  # stands in an error's text between what was met and what to do about it

_LISTED = "allow this user what README's section on secured servers lists"
_CREDENTIALS = "set user and password in VOLTEFACE_REDIS"
_ALONE = (
    "VOLTEFACE_REDIS names a node of a Redis Cluster, whose redirections are not followed: name a primary "
    "that stands alone, or redis+sentinel://"
)
_TRUST = (
    "set VOLTEFACE_REDIS_CAFILE to a PEM file of the authority that signs Redis, and in VOLTEFACE_REDIS the "
    "host name that its certificate bears"
)
_WATCHED = (
    "where this lasts, check in VOLTEFACE_REDIS the Sentinels' hosts, the service's name, sentinel_password "
    "and the scheme (rediss+sentinel:// with TLS), and VOLTEFACE_REDIS_CAFILE"
)
_WATCHED_TRUST = (
    "set VOLTEFACE_REDIS_CAFILE to a PEM file of the authority that signs Redis; its certificates bear what "
    "Sentinels tell: the address, or with `sentinel announce-hostnames yes` the host name"
)
_SCHEME = "set VOLTEFACE_REDIS to rediss:// where this port speaks TLS, and to redis:// where it does not"


class _Remedies(NamedTuple):
    """What mends a certificate that is not believed, and an end that gives a connection up."""

    trust: str
    scheme: str


class SentinelAddress(msgspec.Struct, frozen=True, kw_only=True):
    """What a redis+sentinel:// address says; with TLS, rediss+sentinel://, both sides speak it."""

    nodes: tuple[tuple[str, int], ...]
    service: str
    server: dict[str, Any]  # how to connect to Redis itself: db, username, password
    sentinel: dict[str, str]  # how to connect to the Sentinels: username, password
    tls: dict[str, Any] = {}  # how to connect to either; empty where both are plain


def parse_sentinel(url: str) -> SentinelAddress:
    """The parts of `redis+sentinel://[user:password@]host:port,host:port/service[/db]`.

    The Sentinels' own credentials, if they have any, stand in the query: sentinel_username,
    sentinel_password; with TLS so do ssl_certfile and ssl_keyfile, the client's certificate for both.
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
        tls=_tls(query) if parts.scheme.startswith("rediss") else {},
    )


def _tls(query: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "ssl": True,
        **{name: query[name][0] for name in ("ssl_certfile", "ssl_keyfile") if name in query},
    }


def connect(url: str, *, timeout: float, pool: int, cafile: Path | None = None) -> Redis:
    """A client of at most `pool` connections; each connect, write and read has half of `timeout`.

    It retries nothing by itself, and what the address's query says never overrides that. Call it in the
    event loop that will use it; it connects at the first command. Raises BadAddress.
    """
    check_redis(url)
    options = _options(timeout, pool)
    scheme = urlsplit(url).scheme
    if cafile is not None and scheme.startswith("rediss"):
        options["ssl_ca_certs"] = str(cafile)
    if scheme.endswith("+sentinel"):
        return _through_sentinel(parse_sentinel(url), options)
    given: dict[str, Any] = {**parse_url(url), **options}
    return Redis.from_pool(_Pool(**given))


class _Explaining:
    """A pool whose connections' errors say what to do about them."""

    remedies: ClassVar[_Remedies] = _Remedies(_TRUST, _SCHEME)

    def make_connection(self) -> Any:
        connection: Any = super().make_connection()  # type: ignore[misc]  # the pool's that stands behind it
        connection.connect = _explained(connection.connect, self.remedies, self.remedies.scheme)
        connection.read_response = _explained(connection.read_response, self.remedies)
        return connection


class _Pool(_Explaining, ConnectionPool):
    pass


class _SentinelPool(_Explaining, SentinelConnectionPool):
    remedies: ClassVar[_Remedies] = _Remedies(_WATCHED_TRUST, _SCHEME.replace("://", "+sentinel://"))


def _explained(
    call: Callable[..., Awaitable[Any]], remedies: _Remedies, hint: str = ""
) -> Callable[..., Awaitable[Any]]:
    """The call, with a remedy in its errors; `hint`: that of a connection that the other end gives up."""

    async def explained(*given: Any, **named: Any) -> Any:
        try:
            return await call(*given, **named)
        except MasterNotFoundError as error:  # its own words are each Sentinel's options
            error.args = (f"no Sentinel names a primary that can be reached{REMEDY}{_WATCHED}",)
            raise
        except RedisError as error:
            remedy = _remedy(error, remedies.trust) or (hint if _given_up(error) else "")
            if remedy and REMEDY not in str(error):
                error.args = (f"{error}{REMEDY}{remedy}",)
            raise

    return explained


def _remedy(error: RedisError, trust: str) -> str:
    """What to set where it is known; "" for an outage, which passes."""
    if isinstance(error, NoPermissionError) or "executing the script can't" in str(error):
        return _LISTED
    if isinstance(error, AuthenticationError):
        return _CREDENTIALS
    if isinstance(error, AskError | ClusterCrossSlotError | ClusterDownError):
        return _ALONE
    return trust if isinstance(error.__context__, ssl.SSLError | FileNotFoundError | PermissionError) else ""


def _given_up(error: RedisError) -> bool:
    return isinstance(error.__context__, ConnectionResetError | BrokenPipeError) or "closed by" in str(error)


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
    watchers = {**address.tls, **options, **address.sentinel}
    sentinel = Sentinel(address.nodes, sentinel_kwargs=watchers)  # type: ignore[no-untyped-call]
    given = {**address.tls, **options, **address.server}
    client: Redis = sentinel.master_for(address.service, connection_pool_class=_SentinelPool, **given)
    return client


async def disconnect(client: Redis) -> None:
    """Close the client and, where there are any, its connections to Sentinels."""
    pool = client.connection_pool
    await client.aclose()
    if isinstance(pool, SentinelConnectionPool):
        await pool.sentinel_manager.aclose()
