import asyncio
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest
from redis.asyncio import Redis

from stream import runs
from stream.embedded import EmbeddedRedis
from stream.embedded.broker import Broker
from stream.runs import NotDropped, Run
from stream.settings import Settings
from tests.end_to_end.harness import (
    LEFT_OPEN,
    collecting,
    drained,
    producing,
    running,
    settings_of,
    target,
    turn,
)

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.long]


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with EmbeddedRedis() as server:
        yield server.url


@pytest.fixture(params=["tansu", "kafka"])
def settings(request: pytest.FixtureRequest, redis_url: str, topic_prefix: str) -> Settings:
    broker: Broker = request.getfixturevalue(f"{request.param}_broker")
    idempotence = request.param == "kafka"
    return settings_of(broker.url, redis_url, topic_prefix, idempotence=idempotence, run="again")


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url, protocol=2, socket_timeout=5.0) as client:
        yield client


async def play(settings: Settings) -> int:
    """Fold three turns; how many records were applied."""
    async with running(settings), producing(settings) as producer, collecting(settings) as collected:
        await producer.records(
            [target("a"), *(turn("a", name, "-1" if name == "2" else "+1") for name in "123")]
        )
        await collected.until(lambda seen: len(seen.arrivals()) == 4, "four records")
        await drained(settings)
        return len(collected.arrivals())


async def keys_of(redis: Redis, settings: Settings, run: str) -> int:
    return len(await redis.keys(f"{settings.topic_prefix}:{run}:*"))


@pytest.mark.long
async def test_a_run_is_listed_dropped_and_begins_anew_under_its_name(
    settings: Settings, redis: Redis
) -> None:
    other = msgspec.structs.replace(settings, run="live")
    for one in (settings, other):
        assert await play(one) == 4
    left = 0 if settings.broker_idempotence else 1  # Tansu counts agents that have gone
    await listed_as(settings, Run("live", 4, 0, left), Run("again", 4, 0, left))
    gone = await runs.drop(settings, force=bool(left))
    assert (gone.topics, gone.keys) == (7, 5)
    assert await keys_of(redis, settings, "again") == 0
    assert await keys_of(redis, settings, "live") == 5
    assert [run.name for run in await runs.listed(settings)] == ["live"]
    with pytest.raises(NotDropped, match="no run again"):
        await runs.drop(settings, force=bool(left))
    assert await play(settings) == 4  # from the first record on: what was committed went with the topics


async def test_a_run_with_agents_stays(settings: Settings, redis: Redis) -> None:
    async with running(settings):
        await listed_as(settings, Run("again", 0, 0, 1))
        with pytest.raises(NotDropped, match="1 agents: end them first"):
            await runs.drop(settings)


async def listed_as(settings: Settings, *expected: Run) -> None:
    """Wait until they are listed so: a broker may count agents for some time that have gone."""
    async with asyncio.timeout(30):
        while await runs.listed(settings) != [*expected]:  # noqa: ASYNC110 - the broker must be asked
            await asyncio.sleep(0.05)


async def test_topics_of_another_prefix_stay(settings: Settings, redis: Redis) -> None:
    """Run `b` of prefix `a` and the live run of prefix `a.b` have the same topics."""
    await redis.set(f"{settings.topic_prefix}.again:live:{{default/room}}:window", "x")
    with pytest.raises(NotDropped, match=r"live run of prefix .*\.again"):
        await runs.drop(settings, force=True)


async def test_live_stays() -> None:
    with pytest.raises(NotDropped, match="never dropped"):
        await runs.drop(Settings())


async def test_what_a_drop_left_that_was_cut_short_goes_with_the_next(
    settings: Settings, redis: Redis
) -> None:
    await redis.set(f"{settings.topic_prefix}:again:replay:x", 1)
    assert (await runs.drop(settings)).keys == 1


def test_runs_are_told_by_their_turns_topics() -> None:
    topics = [
        "v.turns",
        "v.r-1.turns",
        "v.r-1.flips",
        "v.Old.turns",
        "w.x.turns",
        "v.live.turns",
        "v.states",
        "turns",
    ]
    assert runs.named("v", topics) == ["live", "r-1"]
    assert runs.named("w", topics) == ["x"]
    assert runs.named("u", topics) == []
