"""Runs: which ones the topics tell of, how far they are, and ending one for good."""

import asyncio
import re
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import msgspec
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import for_code
from redis.asyncio import Redis

from stream import history, lag, topics
from stream.admin import Admin
from stream.history import MissingTopics
from stream.kafka import running
from stream.settings import Settings
from stream.store.connection import connect, disconnect
from tracker import keys
from tracker.keys import LIVE

log = structlog.get_logger(__name__)

CALL_SECONDS = 30.0
REDIS_SECONDS = 10.0
SCANNED = 1000  # keys that are looked at and dropped at once
UNKNOWN_TOPIC = 3  # Kafka's UNKNOWN_TOPIC_OR_PARTITION

_RUN = re.compile(r"[a-z0-9-]{1,40}")


class NotDropped(Exception):
    """A run stays as it is; says why, and what to do."""


class Run(msgspec.Struct, frozen=True):
    """A run as its topics tell of it."""

    name: str
    records: int  # that its turns topic holds
    behind: int  # not finished by its agents
    agents: int


class Dropped(msgspec.Struct, frozen=True):
    """What was there of a run."""

    topics: int
    keys: int


async def listed(settings: Settings) -> list[Run]:
    """Every run of the settings' prefix, live first. Raises KafkaError, TimeoutError and OSError."""
    async with running(Admin, settings) as admin, asyncio.timeout(CALL_SECONDS):
        names = named(settings.topic_prefix, await admin.list_topics())
    found = [await _run(msgspec.structs.replace(settings, run=name)) for name in names]
    return [run for run in found if run is not None]


def named(prefix: str, existing: Collection[str]) -> list[str]:
    """The runs whose turns topics are among these, live first."""
    start, end = f"{prefix}.", ".turns"
    others = {
        name[len(start) : -len(end)]
        for name in existing
        if name.startswith(start) and name.endswith(end) and len(name) > len(start) + len(end)
    }
    live = [LIVE] if keys.topic(prefix, LIVE, "turns") in existing else []
    return [*live, *sorted(name for name in others if _RUN.fullmatch(name) and name != LIVE)]


async def _run(settings: Settings) -> Run | None:
    """None where it is being dropped meanwhile."""
    try:
        async with history.reading(settings) as read, lag.watching(settings) as watched:
            agents, finished = await read.members(), await read.finished()
            async with asyncio.timeout(CALL_SECONDS):
                return Run(settings.run, await _records(settings, finished), await watched.records(), agents)
    except MissingTopics:
        return None


async def _records(settings: Settings, finished: dict[int, int]) -> int:
    async with running(AIOKafkaConsumer, settings) as consumer, asyncio.timeout(CALL_SECONDS):
        places = [TopicPartition(topics.topic(settings, "turns"), number) for number in finished]
        starts, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
    # Tansu lists a last batch's end as if it held one record.
    return sum(max(ends[place], finished[place.partition]) - starts[place] for place in places)


async def drop(settings: Settings, *, force: bool = False) -> Dropped:
    """End the settings' run for good: its keys in Redis, then its topics; cut short, it may be run again.

    `force`: though the broker counts agents; Tansu never forgets one. Raises NotDropped for live and for a
    run that has agents; KafkaError, RedisError, TimeoutError, OSError.
    """
    if settings.run == LIVE:
        raise NotDropped("live is never dropped: delete its topics and Redis keys by hand if you mean it")
    async with running(Admin, settings) as admin:
        async with asyncio.timeout(CALL_SECONDS):
            existing = set(await admin.list_topics())
        names = [
            name
            for one in topics.described(settings)
            if (name := topics.topic(settings, one.name)) in existing
        ]
        await _check_prefix(settings)
        if not force:
            await _check_idle(settings)
        gone = await _unlink(settings)
        if not names and not gone:
            raise NotDropped(f"there is no run {settings.run}: `volteface runs list` names those there are")
        await _delete(admin, names)
    log.info("run.dropped", run=settings.run, topics=len(names), keys=gone)
    return Dropped(len(names), gone)


async def _check_idle(settings: Settings) -> None:
    try:
        async with history.reading(settings) as read:
            agents = await read.members()
    except MissingTopics:  # a drop that was cut short
        return
    if agents:
        group = lag.group(settings)
        raise NotDropped(f"group {group} has {agents} agents: end them first, or --force where they are gone")


async def _check_prefix(settings: Settings) -> None:
    """The live run of prefix `a.b` has the topics of run `b` of prefix `a`; its keys in Redis tell of it."""
    prefix = f"{settings.topic_prefix}.{settings.run}"
    async with _redis(settings) as redis:
        async for _ in redis.scan_iter(match=f"{prefix}:{LIVE}:*", count=SCANNED):
            raise NotDropped(
                f"these are the topics of the live run of prefix {prefix}, which is never dropped"
            )


async def _delete(admin: Admin, names: list[str]) -> None:
    if not names:
        return
    async with asyncio.timeout(CALL_SECONDS):
        response = await admin.delete_topics(names)
    for name, code, *_ in response.topic_error_codes:
        if code not in (0, UNKNOWN_TOPIC):
            raise for_code(code)(f"topic {name}")


async def _unlink(settings: Settings) -> int:
    """How many keys there were; a scan may find one twice, but it is dropped once."""
    async with _redis(settings) as redis:
        return await _unlink_all(redis, f"{settings.topic_prefix}:{keys.escape(settings.run)}:*")


@asynccontextmanager
async def _redis(settings: Settings) -> AsyncIterator[Redis]:
    redis = connect(settings.redis, timeout=REDIS_SECONDS, pool=1, cafile=settings.redis_cafile)
    try:
        yield redis
    finally:
        async with asyncio.timeout(REDIS_SECONDS):
            await disconnect(redis)


async def _unlink_all(redis: Redis, pattern: str) -> int:
    gone, cursor = 0, 0
    while True:
        async with asyncio.timeout(REDIS_SECONDS):
            cursor, found = await redis.scan(cursor, match=pattern, count=SCANNED)
            gone += await redis.unlink(*found) if found else 0
        if not cursor:
            return gone
