"""The state store: reachable, new enough, never evicting, and kept on disk."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from redis.exceptions import AuthenticationError, NoPermissionError, RedisError

from stream.addresses import masked
from stream.doctor.checks import Check, evaluated, failed, ok, warning
from stream.settings import Settings
from stream.store.connection import connect, disconnect

CALL_SECONDS = 3.0
STOP_SECONDS = 1.0
LEAST = (6, 2)
FULL = 0.9  # of maxmemory

Info = Mapping[str, Any]


async def examine(settings: Settings) -> list[Check]:
    """Every check of Redis."""
    try:
        info = await _info(settings)
    except TimeoutError:
        return [
            _unreachable(settings, f"no answer within {CALL_SECONDS:g} s", "start it, or set VOLTEFACE_REDIS")
        ]
    except NoPermissionError as error:
        return [_unreachable(settings, str(error), "allow this user INFO: ACL SETUSER <user> +info")]
    except AuthenticationError as error:
        return [_unreachable(settings, str(error), "set user and password in VOLTEFACE_REDIS")]
    except (RedisError, OSError, ValueError) as error:
        remedy = "start it (`volteface up` runs one), or set VOLTEFACE_REDIS"
        return [_unreachable(settings, str(error) or type(error).__name__, remedy)]
    return [
        ok("redis", f"{masked(settings.redis)}: answers"),
        *evaluated([version, role, eviction, persistence, memory], info),
    ]


async def _info(settings: Settings) -> Info:
    # INFO alone: managed servers refuse CONFIG, and INFO tells the same.
    client = connect(settings.redis, timeout=CALL_SECONDS, pool=1, cafile=settings.redis_cafile)
    try:
        async with asyncio.timeout(CALL_SECONDS):
            info: Info = await client.info()
            return info
    finally:
        with suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await disconnect(client)


def _unreachable(settings: Settings, found: str, remedy: str) -> Check:
    return failed("redis", f"{masked(settings.redis)}: {found}", remedy)


def version(info: Info) -> Check:
    """The store's script needs 6.2."""
    found = str(info["redis_version"])
    if tuple(int(part) for part in found.split(".")[:2]) >= LEAST:
        return ok("redis version", found)
    least = ".".join(map(str, LEAST))
    return failed("redis version", f"{found}, below {least}", f"run Redis {least} or newer")


def role(info: Info) -> Check:
    """A replica takes no writes, and a cluster's node not all of them."""
    remedy = "set VOLTEFACE_REDIS to a primary that stands alone, or to redis+sentinel://, which finds it"
    if info["role"] != "master":
        return failed("redis role", "a replica, which takes no writes", remedy)
    if info.get("cluster_enabled"):
        return warning("redis role", "a cluster's node: the store follows no redirections", remedy)
    return ok("redis role", "primary")


def eviction(info: Info) -> Check:
    """A full Redis refuses a write; any other policy would forget stances in silence."""
    policy = str(info["maxmemory_policy"])
    if policy == "noeviction":
        return ok("redis eviction", policy)
    remedy = "set maxmemory-policy noeviction: CONFIG SET maxmemory-policy noeviction, then CONFIG REWRITE"
    return failed("redis eviction", f"{policy}: a full Redis would forget stances", remedy)


def persistence(info: Info) -> Check:
    """States outlive a restart; else the journal must put them back."""
    if not info["aof_enabled"]:
        remedy = "set appendonly yes: CONFIG SET appendonly yes, then CONFIG REWRITE"
        return warning("redis persistence", "no append-only file: a restart loses states", remedy)
    if info.get("aof_last_write_status", "ok") != "ok":
        return failed("redis persistence", "the append-only file cannot be written", "free its disk")
    return ok("redis persistence", "append-only file")


def memory(info: Info) -> Check:
    """How much is used, and how near that is to where writes are refused."""
    used, limit = int(info["used_memory"]), int(info.get("maxmemory", 0))
    if not limit:
        return ok("redis memory", f"{info['used_memory_human']} used, no limit set")
    found = f"{info['used_memory_human']} of {limit / 2**20:.0f} MiB used"
    if used > FULL * limit:
        remedy = "raise maxmemory: a full Redis refuses writes, and the agents then pause"
        return warning("redis memory", found, remedy)
    return ok("redis memory", found)
