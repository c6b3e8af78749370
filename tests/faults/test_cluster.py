"""Three brokers, three replicas, two in sync: one is killed in the middle, and nobody notices."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from deploy.kafka import kafka
from stream import topics
from stream.doctor import broker
from stream.embedded import EmbeddedRedis
from tests.end_to_end.harness import LEFT_OPEN
from tests.faults.cluster import NODES, Cluster
from tests.faults.feeding import begun, produce
from tests.faults.judging import judge
from tests.faults.relay import Relay
from tests.faults.script import script
from tests.faults.stand import Stand, standing

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.timeout(900)]

TURNS, AHEAD, ROUNDS = 600, 150, 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if reason := kafka.available():
        pytest.skip(f"NOT TESTED AGAINST APACHE KAFKA: {reason}")
    with Cluster() as running:
        yield running


@pytest.fixture
async def stand(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Stand]:
    prefix = f"test-{uuid4().hex[:12]}"
    with EmbeddedRedis() as calm:
        async with standing(cluster, Relay(0), calm, tmp_path, prefix, idempotence=True) as found:
            found.settings = msgspec.structs.replace(found.settings, replication=NODES)
            found.start_agent()
            yield found


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_a_broker_of_three_dies_and_comes_back(stand: Stand, cluster: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    records = script(f"cluster {seed}", TURNS)
    await stand.twin.take(records)
    moment = int(chance.uniform(0.2, 0.5) * len(records))
    node = chance.choice(cluster.nodes)
    await begun(stand, records[: moment + AHEAD], moment)
    await asyncio.to_thread(node.halt, kill=True)
    await produce(stand, records[moment + AHEAD :])
    await judge(stand)  # with two of three
    await asyncio.to_thread(node.resume)
    await judge(stand)


async def test_doctor_finds_replicas_enough(stand: Stand) -> None:
    await topics.ensure(stand.settings)
    found = {check.name: check for check in await broker.examine(stand.settings)}
    told = {name: found[name].status for name in ("broker", "topics", "replication", "min.insync.replicas")}
    assert set(told.values()) == {"ok"}, found
    assert found["replication"].found == f"{NODES} replicas, all in sync"
