"""A shadow folds what its run folds, in a run of its own, and its run is as if it were not there."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest

from models.language.rule import RuleEngine
from models.local import LocalReader
from models.reader import ObserveRequest
from stream import shadowing
from stream.embedded import EmbeddedRedis
from stream.sender import Sender, SenderUnavailable
from stream.settings import Settings
from stream.shadowing import ShadowFailed
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
from tracker.observations import Observation, Probabilities
from tracker.records import Record

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.long]

ROOMS = ("one", "two", "three")
TEXTS = ("+1", "-1", "+1")


class Deaf(RuleEngine):
    """Hears nothing but support."""

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        heard = Probabilities(support=1.0)
        return [msgspec.structs.replace(one, expressed=heard) for one in super().observe(requests)]


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """One Redis: that its versions agree is tested with the store."""
    with EmbeddedRedis() as server:
        yield server.url


@pytest.fixture
def live(broker: str, redis_url: str, topic_prefix: str, request: pytest.FixtureRequest) -> Settings:
    idempotence = "kafka" in request.node.name
    return settings_of(f"kafka://{broker}", redis_url, topic_prefix, idempotence=idempotence)


def records() -> list[Record]:
    turns = (turn(room, f"m-{n}", text) for n, text in enumerate(TEXTS) for room in ROOMS)
    return [*(target(room) for room in ROOMS), *turns]


@asynccontextmanager
async def following(source: Settings, named: Settings) -> AsyncIterator["asyncio.Task[int]"]:
    stop = asyncio.Event()
    task = asyncio.create_task(shadowing.follow(source, named, stop))
    try:
        yield task
    finally:
        stop.set()
        async with asyncio.timeout(30):
            await task


@pytest.mark.long
async def test_a_shadow_folds_the_same_turns_with_another_reader(live: Settings) -> None:
    named = msgspec.structs.replace(live, run="candidate", partitions=3)
    given = records()
    async with collecting(live) as seen, collecting(named) as shaded, producing(live) as producer:
        async with running(live):
            await producer.records(given[:5])
            async with following(live, named), running(named, reader=LocalReader(Deaf())):
                await shaded.until(lambda found: len(found.arrivals()) == 5, "the first records")
                await producer.records(given[5:7])
                await shaded.until(lambda found: len(found.arrivals()) == 7, "those that came since")
            await producer.records(given[7:])
            await drained(live)
        async with following(live, named), running(named, reader=LocalReader(Deaf())):
            await shaded.until(lambda found: len(found.arrivals()) == len(given), "those of meanwhile")
        await seen.rest()
        await shaded.rest()
    assert len(seen.events("flips")) == len(ROOMS) * (len(TEXTS) - 1)
    assert {event["data"]["run"] for event in seen.events().values()} == {"live"}
    assert shaded.events("flips") == {}
    assert {event["data"]["run"] for event in shaded.events().values()} == {"candidate"}
    assert len(shaded.events()) == len(ROOMS)
    # An entry whose acknowledgement was cut off by a stop is sent once more.
    ids = [dict.fromkeys(entry["entry"]["id"] for entry in found.journal("one")) for found in (seen, shaded)]
    assert list(ids[0]) == list(ids[1])


async def test_what_the_broker_does_not_take_is_sent_again(
    live: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, failures, send = msgspec.structs.replace(live, run="candidate"), [1, 2], Sender.send

    async def failing(sender: Sender, messages: list[object]) -> None:
        if failures:
            failures.pop()
            raise SenderUnavailable("away")
        await send(sender, messages)  # type: ignore[arg-type]

    monkeypatch.setattr(Sender, "send", failing)
    monkeypatch.setattr(shadowing, "RETRY_SECONDS", 0.01)
    async with producing(live) as producer, collecting(named) as shaded:
        await producer.records(records())
        async with following(live, named) as task, running(named):
            await shaded.until(lambda found: len(found.arrivals()) == len(records()), "all records")
    assert (failures, task.result()) == ([], len(records()))


async def test_what_cannot_be_followed_is_told(live: Settings) -> None:
    named = msgspec.structs.replace(live, run="candidate")
    with pytest.raises(ShadowFailed, match=r"run live has no topic .*: start `volteface agent`"):
        await shadowing.follow(live, named, asyncio.Event())
    with pytest.raises(ShadowFailed, match="its own shadow"):
        await shadowing.follow(live, live, asyncio.Event())
    away = msgspec.structs.replace(live, broker="kafka://127.0.0.1:1")
    with pytest.raises(ShadowFailed, match="set VOLTEFACE_BROKER"):
        await shadowing.follow(away, msgspec.structs.replace(away, run="candidate"), asyncio.Event())
