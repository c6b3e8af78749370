"""The syntax of broker, Redis, database and worker addresses, and the masking of their passwords."""

import re
from urllib.parse import SplitResult, parse_qs, urlsplit

BROKER = "kafka://host:port;host2:port"
REDIS = (
    "redis://host:port/0, redis+sentinel://host:port,host2:port/service/0, or with TLS rediss:// and "
    "rediss+sentinel://"
)
SENTINEL_QUERY = ("sentinel_username", "sentinel_password", "ssl_certfile", "ssl_keyfile")
DATABASE = "sqlite:///path or postgresql+driver://user@host:port/name"
WORKER = "http://host:port or https://host:port"
LISTENING = "host:port, as in 0.0.0.0:8080"
REMOTE = "http://host:port/v1 or https://host/v1"

# Passwords hold "@", "/" and ":" where somebody forgot to escape them: mask too much rather than too little.
_USERINFO = re.compile(r"(?<=://)(?P<user>[^:@/?#]*):.*@")
_QUERY = re.compile(r"(?P<name>[?&;][^=&]*(?:pass|secret|token|key)[^=&]*=)[^&]*", re.IGNORECASE)


class BadAddress(ValueError):
    """An address whose syntax is wrong; its message never repeats the address."""


def brokers(address: str) -> tuple[str, ...]:
    """`host:port` of every broker in `kafka://host:port;host2:port`. Raises BadAddress."""
    scheme, found, rest = address.partition("://")
    if scheme != "kafka" or not found:
        raise BadAddress("it begins with kafka://")
    return tuple(_host_port(part.removeprefix("kafka://"), None) for part in rest.split(";"))


def check_redis(address: str) -> None:
    """Raises BadAddress for what is no Redis address."""
    parts = _split(address, ("redis", "rediss", "redis+sentinel", "rediss+sentinel"))
    watched = parts.scheme.endswith("+sentinel")
    if "@" in parts.path or "@" in parts.fragment:
        raise BadAddress("in a user's name or password / # ? : and @ are percent-encoded: / is %2F")
    path = parts.path.strip("/").split("/") if parts.path.strip("/") else []
    hosts = parts.netloc.rpartition("@")[2]
    if watched:
        _check_query(parts.query)
        if not path:
            raise BadAddress("a sentinel address names its service after the hosts")
        path = path[1:]
    elif "," in hosts:
        raise BadAddress("only redis+sentinel:// and rediss+sentinel:// take several hosts")
    for host in hosts.split(","):
        _host_port(host, 26379 if watched else 6379)
    if len(path) > 1 or (path and not path[0].isdecimal()):
        raise BadAddress("the database is one number at the end")


def _check_query(query: str) -> None:
    for name in parse_qs(query, keep_blank_values=True):
        if name not in SENTINEL_QUERY:
            raise BadAddress(f"after ? a sentinel address takes {', '.join(SENTINEL_QUERY)} alone")


def check_database(address: str) -> None:
    """Raises BadAddress for what is no SQLAlchemy URL of a database that is served."""
    scheme, found, rest = address.partition("://")
    dialect = scheme.partition("+")[0]
    if not found or dialect not in ("sqlite", "postgresql"):
        raise BadAddress("it begins with sqlite:// or postgresql://, perhaps with +driver")
    if dialect == "postgresql" and not rest:
        raise BadAddress("a host or a database is missing")


def check_worker(address: str) -> None:
    """Raises BadAddress for what is no HTTP address."""
    parts = _split(address, ("http", "https"))
    _host_port(parts.netloc.rpartition("@")[2], 80)
    if parts.query or parts.fragment:
        raise BadAddress("it ends before ? and #")


def listening(address: str) -> tuple[str, int]:
    """Host and port of `host:port`. Raises BadAddress."""
    host, _, port = _host_port(address, None).rpartition(":")
    return host.strip("[]"), int(port)


def masked(address: str) -> str:
    """The address without its passwords, for people and logs."""
    return _QUERY.sub(r"\g<name>***", _USERINFO.sub(r"\g<user>:***@", address))


def _split(address: str, schemes: tuple[str, ...]) -> SplitResult:
    try:
        parts = urlsplit(address)
    except ValueError:
        raise BadAddress("it is no URL") from None
    if parts.scheme not in schemes or "://" not in address:
        raise BadAddress(f"it begins with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    return parts


def _host_port(part: str, default: int | None) -> str:
    """`host:port` of one network location. Raises BadAddress."""
    try:
        parts = urlsplit(f"//{part}")
        host, port = parts.hostname, parts.port or default
    except ValueError:
        raise BadAddress("a port is a number from 1 to 65535") from None
    if not host or parts.username is not None or parts.path or any(letter.isspace() for letter in part):
        raise BadAddress("every host is written as host:port")
    if port is None:
        raise BadAddress("every host has a port")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
