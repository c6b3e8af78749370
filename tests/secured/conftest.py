"""Servers as production has them: TLS, passwords, and users who may do only what they must."""

import contextlib
from collections.abc import Iterator

import msgspec
import pytest

from deploy.kafka import kafka
from stream.embedded import ServiceUnavailable
from stream.settings import Settings
from tests.end_to_end.harness import settings_of, sweeping
from tests.secured import kafka_server
from tests.secured.authority import Authority, Certificate
from tests.secured.kafka_server import SecuredKafka
from tests.secured.redis_server import SecuredRedis

# Ways to a broker: listener, security and SASL mechanism.
USUAL = (("SECURED", "sasl_ssl", "SCRAM-SHA-512"), ("MUTUAL", "ssl", "PLAIN"))
OTHERS = (
    ("SECURED", "sasl_ssl", "PLAIN"),
    ("SECURED", "sasl_ssl", "SCRAM-SHA-256"),
    ("BARE", "sasl_plaintext", "SCRAM-SHA-512"),
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A whole agent on every way is for --full; CI has time for two."""
    if "agents_way" in metafunc.fixturenames:
        ways = USUAL + OTHERS if metafunc.config.getoption("full") else USUAL
        metafunc.parametrize("agents_way", ways, ids="-".join)


@pytest.fixture(autouse=True, scope="module")
def _swept() -> Iterator[None]:
    """What aiokafka leaves open of connections that were refused is not the next module's fault."""
    with sweeping():
        yield


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs all servers here, and the clients."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def client_certificate(authority: Authority) -> Certificate:
    """What shows an agent to servers that ask."""
    return authority.issue("client", "agent.example.org")


@pytest.fixture(scope="session")
def secured_kafka(authority: Authority) -> Iterator[SecuredKafka]:
    """One Apache Kafka for all tests here."""
    if reason := kafka.available():
        pytest.skip(f"NOT TESTED AGAINST APACHE KAFKA: {reason}")
    with SecuredKafka(authority) as broker:
        yield broker


@pytest.fixture(scope="session")
def secured_redis(authority: Authority) -> Iterator[SecuredRedis]:
    """One Redis for all tests here."""
    with tls_redis(SecuredRedis(authority)) as server:
        yield server


@contextlib.contextmanager
def tls_redis(server: SecuredRedis) -> Iterator[SecuredRedis]:
    """The server while the block runs; a Redis that was built without TLS cannot be tried."""
    try:
        server.start()
    except ServiceUnavailable as error:
        if "Bad directive" not in str(error):
            raise
        pytest.skip(
            "NOT TESTED AGAINST REDIS WITH TLS: this redis-server has none (`apt install redis-server`)"
        )
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def settings(
    secured_kafka: SecuredKafka, secured_redis: SecuredRedis, authority: Authority, topic_prefix: str
) -> Settings:
    """A run of its own, with a password for either server."""
    run = settings_of(secured_kafka.at("SECURED"), secured_redis.url, topic_prefix, idempotence=True)
    return msgspec.structs.replace(
        run,
        broker_security="sasl_ssl",
        broker_sasl_mechanism="SCRAM-SHA-512",
        broker_username=kafka_server.USER,
        broker_password=kafka_server.PASSWORD,
        broker_cafile=authority.cafile,
        redis_cafile=authority.cafile,
    )
