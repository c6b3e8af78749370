"""One machine: the broker and the Redis beside this process, and the settings that find them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from stream.embedded import EmbeddedBroker, EmbeddedRedis
from stream.settings import Settings

# Tansu lets a group's first member wait for half of the session timeout, and one that comes again for more.
REBALANCE_SECONDS = 2.0


SETTINGS_FILE, DATABASE_FILE = "volteface.toml", "volteface.db"
_FOUND_BY = (
    "broker",
    "broker_security",
    "broker_idempotence",
    "redis",
    "database",
    "rebalance_seconds",
    "batch_seconds",
    "partitions",
)


def write_settings(here: Settings, data: Path) -> Path:
    """Write what other commands need to reach these services; gives the file for VOLTEFACE_CONFIG."""
    file = data / SETTINGS_FILE
    # JSON's strings, numbers and booleans are TOML's as well.
    found = {name: getattr(here, name) for name in _FOUND_BY}
    lines = [f"{name} = {json.dumps(value)}" for name, value in found.items() if value is not None]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@contextmanager
def services(
    settings: Settings,
    *,
    data: Path | None = None,
    broker_port: int | None = None,
    redis_port: int | None = None,
) -> Iterator[Settings]:
    """Start broker and Redis, give the settings that reach them, and always stop both.

    Redis keeps its data in the folder `data`; the broker keeps nothing. Raises ServiceUnavailable.
    """
    with EmbeddedRedis(data, port=redis_port) as redis, EmbeddedBroker(port=broker_port) as broker:
        yield msgspec.structs.replace(
            settings,
            broker=broker.url,
            broker_security="plaintext",
            broker_idempotence=False,  # Tansu knows no producer ids
            redis=redis.url,
            database=settings.database or (data and f"sqlite:///{data.resolve() / DATABASE_FILE}"),
            rebalance_seconds=REBALANCE_SECONDS,
            batch_seconds=REBALANCE_SECONDS * 0.45,  # a batch ends within half of it
        )
