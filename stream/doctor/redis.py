"""The state store: reachable, new enough, never evicting, and kept on disk."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from redis.exceptions import NoPermissionError, RedisError, ResponseError

from stream.addresses import masked
from stream.doctor.checks import Check, evaluated, failed, ok, warning
from stream.settings import Settings
from stream.store.connection import REMEDY, connect, disconnect
from tracker import keys

CALL_SECONDS = 3.0
STOP_SECONDS = 1.0
LEAST = (6, 2)
FULL = 0.9  # of maxmemory

# What the store asks for, beside INFO and EVAL; `runs drop` needs SCAN and UNLINK, too.
NEEDED = (
    "ping", "evalsha", "get", "set", "hget", "hset", "hdel", "hexists", "hmget", "hgetall", "zadd", "zrem",
    "zrangebyscore", "zrevrange",
)  # fmt: skip
# Redis tells a user's rights to a script, from version 7 on, and else only to administrators.
_LACKING = """
local lacking = {}
for _, command in ipairs(ARGV) do
  if redis.acl_check_cmd and not redis.acl_check_cmd(command, KEYS[1], '1', KEYS[1]) then
    lacking[#lacking + 1] = command
  end
end
return lacking
"""

Info = Mapping[str, Any]


async def examine(settings: Settings) -> list[Check]:
    """Every check of Redis."""
    try:
        info, lacking = await _told(settings)
    except TimeoutError:
        return [
            _unreachable(settings, f"no answer within {CALL_SECONDS:g} s", "start it, or set VOLTEFACE_REDIS")
        ]
    except NoPermissionError as error:
        said = str(error).partition(REMEDY)[0]
        return [_unreachable(settings, said, "allow this user INFO: ACL SETUSER <user> +info")]
    except (RedisError, OSError, ValueError) as error:
        said = str(error) or type(error).__name__
        return [_unreachable(settings, said, "start it (`volteface up` runs one), or set VOLTEFACE_REDIS")]
    return [
        _allowed(settings, lacking),
        *evaluated([version, role, eviction, persistence, memory], info),
    ]


async def _told(settings: Settings) -> tuple[Info, list[str]]:
    """What Redis tells of itself, and what this user may not do there."""
    # INFO alone: managed servers refuse CONFIG, and INFO tells the same.
    client = connect(settings.redis, timeout=CALL_SECONDS, pool=1, cafile=settings.redis_cafile)
    try:
        async with asyncio.timeout(CALL_SECONDS):
            info: Info = await client.info()
            return info, await _lacking(client, settings)
    finally:
        with suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await disconnect(client)


async def _lacking(client: Any, settings: Settings) -> list[str]:
    key = keys.redis_key(settings.topic_prefix, settings.run, "default", "doctor", "header")
    try:
        return [command.decode() for command in await client.eval(_LACKING, 1, key, *NEEDED)]
    except NoPermissionError as error:
        return [f"eval: {str(error).partition(REMEDY)[0]}"]
    except ResponseError:  # a cluster's node that has other keys, which is told apart
        return []


def _allowed(settings: Settings, lacking: list[str]) -> Check:
    if not lacking:
        return ok("redis", f"{masked(settings.redis)}: answers")
    rights = " ".join(f"+{command.partition(':')[0]}" for command in lacking)
    remedy = f"ACL SETUSER <user> ~{settings.topic_prefix}:* {rights}; README, Secured servers, has the whole"
    return failed("redis", f"{masked(settings.redis)}: this user may not {', '.join(lacking)}", remedy)


def _unreachable(settings: Settings, said: str, remedy: str) -> Check:
    found, _, known = said.partition(REMEDY)
    scheme = settings.redis.partition("://")[0]
    if scheme.startswith("rediss"):
        remedy += f", or write {scheme.replace('rediss', 'redis')}:// if it speaks no TLS"
    return failed("redis", f"{masked(settings.redis)}: {found}", known or remedy)


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
