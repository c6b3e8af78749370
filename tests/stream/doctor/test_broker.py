"""The broker looked at: on Tansu and Apache Kafka, and where there is none."""

import logging
import socket
import time

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import IncompatibleBrokerVersion

from stream.doctor import Check, broker
from stream.embedded.broker import Broker
from stream.kafka import client_options, running
from stream.settings import Settings
from stream.topics import DAY_MS, ensure, topic
from tests.stream.doctor.helpers import by_name, settings


@pytest.fixture
def run(broker: str, topic_prefix: str) -> Settings:
    return settings(broker=f"kafka://{broker}", topic_prefix=topic_prefix, partitions=3)


async def look(run: Settings) -> dict[str, Check]:
    return by_name(await broker.examine(run))


def is_kafka(request: pytest.FixtureRequest) -> bool:
    return "kafka" in request.node.callspec.params.values()


async def test_a_new_run_has_no_topics_and_looking_makes_none(run: Settings) -> None:
    for _ in range(2):
        found = await look(run)
        assert found["broker"].status == "ok"
        assert "1 broker, cluster " in found["broker"].found
        assert found["topics"].status == "warning"
        assert topic(run, "turns") in found["topics"].found


async def test_topics_as_the_agent_makes_them(run: Settings, request: pytest.FixtureRequest) -> None:
    await ensure(run)
    found = await look(run)
    wanted = dict.fromkeys(("topics", "partitions", "retention of turns", "compaction"), "ok")
    kafka = is_kafka(request)
    wanted["idempotent producer"] = "ok" if kafka else "failed"
    wanted["time of turns"] = "ok" if kafka else "warning"
    wanted["min.insync.replicas"] = "warning" if kafka else "skipped"
    wanted["replication"] = "warning"
    assert {name: found[name].status for name in wanted} == wanted
    assert found["partitions"].found == "3 in each topic"


async def test_the_newest_turn_shows_whose_time_it_bears(
    run: Settings, request: pytest.FixtureRequest
) -> None:
    await ensure(run)
    producer = AIOKafkaProducer(**client_options(run))
    await producer.start()
    try:
        await producer.send_and_wait(topic(run, "turns"), b"{}", key=b"k", timestamp_ms=1000)
    finally:
        await producer.stop()
    check = (await look(run))["time of turns"]
    if is_kafka(request):
        assert (check.status, check.found) == ("ok", "LogAppendTime, as the newest turn shows")
    else:
        assert (check.status, "sender's time" in check.found) == ("warning", True)


async def test_topics_made_by_hand_and_wrongly(run: Settings) -> None:
    config = {"retention.ms": str(DAY_MS), "cleanup.policy": "delete"}
    admin = AIOKafkaAdminClient(**client_options(run))
    await admin.start()
    try:
        await admin.create_topics(
            [
                NewTopic(topic(run, "turns"), 2, 1, topic_configs=config),
                NewTopic(topic(run, "states"), 1, 1, topic_configs=config),
            ]
        )
    finally:
        await admin.close()
    found = await look(run)
    wanted = {
        "topics": "warning",
        "partitions": "failed",
        "retention of turns": "failed",
        "time of turns": "warning",
        "compaction": "failed",
    }
    assert {name: found[name].status for name in wanted} == wanted


async def test_more_replicas_in_sync_than_there_are(kafka_broker: Broker, topic_prefix: str) -> None:
    run = settings(broker=kafka_broker.url, topic_prefix=topic_prefix, partitions=1)
    strict = NewTopic(topic(run, "journal"), 1, 1, topic_configs={"min.insync.replicas": "2"})
    async with running(AIOKafkaAdminClient, run) as admin:
        await admin.create_topics([strict])
    await ensure(run)
    check = (await look(run))["min.insync.replicas"]
    assert (check.status, check.found.split(":")[0]) == ("failed", f"2 of {strict.name}, which has 1")
    assert check.remedy.endswith(f"--entity-name {strict.name} --add-config min.insync.replicas=1")


async def test_idempotence_that_is_off_is_not_tried(run: Settings, request: pytest.FixtureRequest) -> None:
    off = settings(broker=run.broker, topic_prefix=run.topic_prefix, broker_idempotence="false")
    assert (await look(off))["idempotent producer"].status == "skipped"


def unanswered(found: dict[str, Check], *parts: str) -> None:
    assert {name: check.status for name, check in found.items()} == {"broker": "failed", "topics": "skipped"}
    text = f"{found['broker'].found} {found['broker'].remedy}"
    assert [part for part in parts if part not in text] == []


async def test_a_dead_port_is_named_with_its_reason(capfd: pytest.CaptureFixture[str]) -> None:
    found = await look(settings(broker="kafka://127.0.0.1:1"))
    unanswered(found, "kafka://127.0.0.1:1", "Connect call failed", "VOLTEFACE_BROKER")
    assert capfd.readouterr() == ("", "")


async def test_a_port_that_never_answers_ends_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began, port = time.monotonic(), silent.getsockname()[1]
        unanswered(await look(settings(broker=f"kafka://127.0.0.1:{port};127.0.0.1:{port}")), "no answer")
        assert time.monotonic() - began < broker.LOOK_SECONDS + 2


async def test_a_broker_that_does_not_tell_its_configuration(
    run: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> None:
        raise IncompatibleBrokerVersion

    await ensure(run)
    monkeypatch.setattr(AIOKafkaAdminClient, "describe_configs", refused)
    found = await look(run)
    names = ("broker", "topics", "retention of turns", "compaction", "min.insync.replicas")
    assert [found[name].status for name in names] == ["ok", "ok", "warning", "warning", "skipped"]


async def test_credentials_that_the_broker_does_not_take_are_the_reason(run: Settings) -> None:
    secret = {"broker_username": "ada", "broker_password": "hunter2"}
    found = await look(settings(broker=run.broker, broker_security="sasl_plaintext", **secret))
    unanswered(found, "Sasl", "VOLTEFACE_BROKER_SECURITY")
    assert "hunter2" not in str(found)


async def test_authorities_that_are_not_there_are_the_reason() -> None:
    unanswered(
        await look(
            settings(broker="kafka://127.0.0.1:1", broker_security="ssl", broker_cafile="/nowhere.pem")
        ),
        "FileNotFoundError",
        "VOLTEFACE_BROKER_SECURITY",
    )


def test_logs_are_as_before_afterwards() -> None:
    logger = logging.getLogger("aiokafka")
    before = (list(logger.handlers), logger.propagate)
    with broker.hushed() as heard:
        logging.getLogger("aiokafka.conn").error("said %s", "so")
        logging.getLogger("asyncio").error("left behind")
    assert heard == ["said so"]
    assert (logger.handlers, logger.propagate) == before
