"""A whole run on secured servers, and every command that reaches them."""

import asyncio

import msgspec
import pytest
from redis.asyncio import Redis

from stream import roles
from stream.settings import Settings
from tests.end_to_end.harness import (
    LEFT_OPEN,
    Collected,
    collecting,
    drained,
    key,
    producing,
    running,
    target,
    turn,
)
from tests.secured.authority import Certificate
from tests.secured.commands import DEAD_LETTERS, DOCTOR, REBUILD, RUNS, ran
from tests.secured.kafka_server import SecuredKafka, through
from tests.secured.redis_server import WATCHER, SecuredRedis

pytestmark = pytest.mark.filterwarnings(LEFT_OPEN)

ROOM = "room"


@pytest.fixture
def on_its_way(
    settings: Settings,
    secured_kafka: SecuredKafka,
    client_certificate: Certificate,
    agents_way: tuple[str, str, str],
) -> Settings:
    return through(settings, secured_kafka, client_certificate, agents_way)


async def flipped(settings: Settings) -> Collected:
    """What has left after a flip and a refused record, with an agent that has ended."""
    async with (
        running(settings, store=roles.store(settings)),
        producing(settings) as producer,
        collecting(settings) as collected,
    ):
        await producer.records([target(ROOM), turn(ROOM, "first"), turn(ROOM, "second", "-1")])
        await producer.raw(key(ROOM), b"nonsense")
        await collected.until(lambda seen: seen.values["flips"] and seen.dead_letters, "flip and dead letter")
        await drained(settings)
    return collected


async def test_a_flip_leaves_and_every_command_arrives(
    on_its_way: Settings, secured_redis: SecuredRedis, agents_way: tuple[str, str, str]
) -> None:
    collected = await flipped(on_its_way)
    [flip] = collected.values["flips"]
    assert (flip["data"]["from"], flip["data"]["to"]) == ("support", "oppose")
    if agents_way[0] == "SECURED":  # the commands' clients are the same, whatever they show the broker
        await every_command_arrives(on_its_way, secured_redis)


async def every_command_arrives(settings: Settings, server: SecuredRedis) -> None:
    await emptied(settings, server)
    unknown = msgspec.structs.replace(settings, redis=server.as_user("eve"))
    status, said = await ran(unknown, REBUILD)
    assert (status, "set user and password in VOLTEFACE_REDIS" in said.splitlines()[-1]) == (1, True), said
    rebuilt, letters, listed, examined = await asyncio.gather(
        ran(settings, REBUILD),
        ran(settings, DEAD_LETTERS, "list", "--json"),
        ran(settings, RUNS, "list", "--json"),
        ran(settings, DOCTOR, "--json"),
    )
    assert (rebuilt[0], "1 conversations rebuilt" in rebuilt[1]) == (0, True), rebuilt[1]
    assert (letters[0], "not_json" in letters[1]) == (0, True), letters[1]
    assert (listed[0], '"run":"live"' in listed[1]) == (0, True), listed[1]
    lines = [msgspec.json.decode(line) for line in examined[1].splitlines()]
    found = {line["name"]: line["status"] for line in lines if line["kind"] == "check"}
    names = ("broker", "idempotent producer", "topics", "partitions", "time of turns", "redis", "redis role")
    assert {found[name] for name in names} == {"ok"}, found


async def emptied(settings: Settings, server: SecuredRedis) -> None:
    """Drop what Redis holds of a run; there was something."""
    async with Redis.from_url(
        server.as_user(WATCHER), ssl_ca_certs=str(settings.redis_cafile), protocol=2
    ) as redis:
        found = [each async for each in redis.scan_iter(match=f"{settings.topic_prefix}:*")]
        assert len(found) >= 5
        await redis.unlink(*found)
