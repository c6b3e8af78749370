"""Settings of a run of its own on each real broker, and one Redis."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from stream.embedded import EmbeddedRedis
from stream.embedded.broker import Broker
from stream.settings import Settings
from tests.end_to_end.harness import settings_of, sweeping


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """One Redis: that its versions agree is tested with the store."""
    with EmbeddedRedis() as server:
        yield server.url


@pytest.fixture(autouse=True, scope="module")
def _swept() -> Iterator[None]:
    """What aiokafka leaves open where a broker ends in its middle is not the next module's fault."""
    with sweeping():
        yield


@pytest.fixture(scope="session", params=["tansu", "kafka"])
def named_broker(request: pytest.FixtureRequest) -> tuple[str, Broker]:
    """Each broker in turn, with its name."""
    return request.param, request.getfixturevalue(f"{request.param}_broker")


@pytest.fixture(scope="module")
def module_settings(named_broker: tuple[str, Broker], redis_url: str) -> Settings:
    """The live run of a prefix that this module shares, once on each broker."""
    name, broker = named_broker
    return settings_of(broker.url, redis_url, f"test-{uuid4().hex[:12]}", idempotence=name == "kafka")


@pytest.fixture
def settings(named_broker: tuple[str, Broker], redis_url: str, topic_prefix: str) -> Settings:
    """The live run of a prefix of its own, on each broker."""
    name, broker = named_broker
    return settings_of(broker.url, redis_url, topic_prefix, idempotence=name == "kafka")


@pytest.fixture
def kafka_settings(kafka_broker: Broker, redis_url: str, topic_prefix: str) -> Settings:
    """The live run of a prefix of its own, on Apache Kafka alone: restarts, which Tansu forgets all over."""
    return settings_of(kafka_broker.url, redis_url, topic_prefix, idempotence=True)
