"""A user of Apache Kafka who may do what README lists, and what is said where a right of it is missing."""

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from stream import topics
from stream.doctor import broker
from stream.settings import Settings
from tests.end_to_end.harness import LEFT_OPEN, agent_process, producing, target, turn
from tests.secured import documented
from tests.secured.commands import REBUILD, ran
from tests.secured.kafka_server import FEW, LACKING, SecuredKafka
from tests.secured.redis_server import SecuredRedis
from tests.secured.rights import allow
from tests.secured.test_agent import ROOM, every_command_arrives, flipped

pytestmark = pytest.mark.filterwarnings(LEFT_OPEN)

REMEDY = "allow this user what README's section on secured servers lists for Kafka"
PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
async def rights(secured_kafka: SecuredKafka) -> None:
    """To FEW what README lists, to each other one all but what is in the name (of the group: to read it)."""
    for user in (FEW, *LACKING):
        lacking = user.removeprefix("without-")
        for kind, (prefix, operations) in documented.rights().items():
            missing = {lacking} if kind == "topic" else {"Read"} if kind == lacking else set()
            await allow(secured_kafka.bootstrap, user, kind, prefix, *(set(operations) - missing))


def without(settings: Settings, lacking: str) -> Settings:
    return msgspec.structs.replace(settings, broker_username=f"without-{lacking}")


@pytest.mark.usefixtures("rights")
async def test_what_readme_lists_is_enough(settings: Settings, secured_redis: SecuredRedis) -> None:
    few = msgspec.structs.replace(settings, broker_username=FEW)
    assert (await flipped(few)).values["flips"]
    await every_command_arrives(few, secured_redis)


@pytest.mark.usefixtures("rights")
@pytest.mark.parametrize(
    ("lacking", "words", "ends"),
    [
        ("Create", "TopicsUnavailable: topic .* was refused by the broker: code 29", True),
        ("Read", "AppFailed: the app ended by itself: TopicAuthorizationFailedError", True),
        ("group", "AppFailed: .*GroupAuthorizationFailedError", True),
        ("Write", "agent.paused .*ClusterAuthorizationFailedError", False),
    ],
)
async def test_an_agent_says_what_is_missing(
    settings: Settings, tmp_path: Path, lacking: str, words: str, ends: bool
) -> None:
    if lacking != "Create":
        await topics.ensure(settings)
        async with producing(settings) as producer:
            await producer.records([target(ROOM), turn(ROOM, "first")])
    log, told = tmp_path / "log", re.compile(f"{words}.* -> {REMEDY}")
    with agent_process(without(settings, lacking), log) as process:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not told.search(await asyncio.to_thread(log.read_text)):  # noqa: ASYNC110 - a file must be read
                await asyncio.sleep(0.05)
            status = await asyncio.to_thread(process.wait) if ends else process.poll()
    assert status == (1 if ends else None)


@pytest.mark.usefixtures("rights")
async def test_a_rebuild_that_may_not_read_is_none(settings: Settings) -> None:
    await flipped(settings)
    status, said = await ran(without(settings, "Read"), REBUILD)
    assert (status, REMEDY in said) == (1, True), said


@pytest.mark.usefixtures("rights")
async def test_doctor_tells_that_agents_may_not_join(settings: Settings) -> None:
    await topics.ensure(settings)
    found = {check.name: check for check in await broker.examine(without(settings, "group"))}
    assert (found["group"].status, found["group"].remedy) == ("failed", REMEDY)
    found = {check.name: check for check in await broker.examine(settings)}
    assert found["group"].status == "ok"
