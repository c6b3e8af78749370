"""Stands to be disturbed, and which rounds are run without --full."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from deploy.kafka import kafka
from stream.embedded import EmbeddedRedis
from tests.end_to_end.harness import sweeping
from tests.faults.faults import FAULTS
from tests.faults.stand import Stand
from tests.faults.stands import Stands

BROKERS = ("tansu", "kafka")
SEEDS = 3  # of each fault, with --full
ROUNDS, LONG_TURNS = 20, 2000  # of the long run, with --full
SHORT_ROUND = ("tansu", 300, 0)  # without


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every fault on every broker with some seeds, or each once where it is usually tried; and the rounds."""
    full = metafunc.config.getoption("full")
    if "fault" in metafunc.fixturenames:
        given = [
            pytest.param(broker, fault, seed, id=f"{broker}-{fault.name.replace(' ', '_')}-{seed}")
            for broker in BROKERS
            for fault in FAULTS
            for seed in range(SEEDS if full else 1)
            if broker in (fault.brokers if full else fault.usual)
        ]
        metafunc.parametrize(("broker_name", "fault", "seed"), given)
    if "long_seed" in metafunc.fixturenames:
        rounds = [(broker, LONG_TURNS, seed) for broker in reversed(BROKERS) for seed in range(ROUNDS)]
        metafunc.parametrize(("broker_name", "turns", "long_seed"), rounds if full else [SHORT_ROUND])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Three brokers need a gigabyte and half a minute."""
    return True if collection_path.name == "test_cluster.py" and not config.getoption("full") else None


@pytest.fixture(autouse=True, scope="module")
def _swept() -> Iterator[None]:
    """What aiokafka leaves open where a broker ends in its middle is not the next module's fault."""
    with sweeping():
        yield


@pytest.fixture(scope="session")
async def stands(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stands]:
    """The stands of the whole run, and the Redis of their undisturbed twins."""
    with EmbeddedRedis() as calm:
        stands = Stands(tmp_path_factory.mktemp("stands"), calm)
        try:
            yield stands
        finally:
            await stands.close()


@pytest.fixture
async def stand(stands: Stands, broker_name: str, request: pytest.FixtureRequest) -> AsyncIterator[Stand]:
    """The stand on a broker. What fails on it leaves it unsound, and the next test gets another."""
    if broker_name == "kafka" and (reason := kafka.available()):
        pytest.skip(f"NOT TESTED AGAINST APACHE KAFKA: {reason}")
    found = await stands.on(broker_name)
    found.sound = False
    yield found
