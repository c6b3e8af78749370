"""The real servers that tests run against: each starts once a run, when the first selected test needs it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from deploy.kafka import kafka
from stream.embedded import EmbeddedBroker, EmbeddedRedis, find_redis_servers
from stream.embedded.broker import Broker
from tests import postgres


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--full`: all that tests/faults has, which takes hours; without it, what CI has time for."""
    parser.addoption(
        "--full", action="store_true", help="all rounds of tests/faults, long tests on Tansu, too"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test marked `long` runs on Apache Kafka alone: CI has no time for the other broker."""
    if config.getoption("full") or kafka.available() is not None:
        return
    left = [item for item in items if item.get_closest_marker("long") and "[tansu" in item.name]
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=left)


def _redis_version(server: Path) -> str:
    """The version that `redis-server --version` prints, as in `Redis server v=6.2.5 sha=...`."""
    printed = subprocess.run([server, "--version"], capture_output=True, text=True, check=True, timeout=10)
    return next(word[2:] for word in printed.stdout.split() if word.startswith("v="))


def _redis_servers() -> list[object]:
    found = [pytest.param(server, id=f"redis-{_redis_version(server)}") for server in find_redis_servers()]
    # Without any server the tests fail with the remedy; an empty list would skip them in silence.
    return [*found] or [pytest.param(None, id="redis-missing")]


@pytest.fixture(scope="session", params=_redis_servers())
def redis_server(request: pytest.FixtureRequest) -> Iterator[EmbeddedRedis]:
    """A running Redis without persistence, shared by the whole run: use the `prefix`, stop it never."""
    with EmbeddedRedis(binary=request.param) as server:
        yield server


@pytest.fixture(scope="session")
def redis_url(redis_server: EmbeddedRedis) -> str:
    """The shared Redis' address."""
    return redis_server.url


@pytest.fixture
def prefix() -> str:
    """What this test's Redis keys begin with, and nobody else's."""
    return f"test-{uuid4().hex[:12]}:"


@pytest.fixture
def topic_prefix() -> str:
    """What this test's topics and groups begin with, and nobody else's."""
    return f"test-{uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def tansu_broker() -> Iterator[EmbeddedBroker]:
    """A running Tansu, shared by the whole run."""
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[kafka.KafkaBroker]:
    """A running Apache Kafka, shared by the whole run."""
    if reason := kafka.available():
        pytest.skip(f"NOT TESTED AGAINST APACHE KAFKA: {reason}")
    with kafka.KafkaBroker() as broker:
        yield broker


@pytest.fixture(scope="session", params=["tansu", "kafka"])
def broker(request: pytest.FixtureRequest) -> str:
    """Each broker's `host:port` in turn."""
    running: Broker = request.getfixturevalue(f"{request.param}_broker")
    return running.bootstrap


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.PostgresServer]:
    """A running PostgreSQL, shared by the whole run: stop it never."""
    if reason := postgres.available():
        pytest.skip(f"NOT TESTED AGAINST POSTGRESQL: {reason}")
    with postgres.PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres_server: postgres.PostgresServer) -> str:
    """The shared PostgreSQL's address, with an empty database of the whole run."""
    return postgres_server.fresh()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An empty database of the module's own, on each kind of server in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('database')}/volteface.db"
    server: postgres.PostgresServer = request.getfixturevalue("postgres_server")
    return server.fresh()
