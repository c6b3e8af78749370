"""A real Kafka starts, keeps its topics over a restart, refuses clearly, and is gone afterwards."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from deploy.kafka import kafka
from stream.embedded import ServiceUnavailable
from stream.embedded.server import PortTaken

_ROOT = Path(__file__).resolve().parents[2]
_SCRIPT = _ROOT / "deploy" / "kafka" / "kafka.py"

needs_kafka = pytest.mark.skipif(
    kafka.available() is not None, reason=f"NOT TESTED AGAINST APACHE KAFKA: {kafka.available()}"
)


def _until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.05)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def _create(bootstrap: str, topic: NewTopic) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    async with asyncio.timeout(30):
        await admin.start()
        try:
            answer = await admin.create_topics([topic])
        finally:
            await admin.close()
    assert [error[1] for error in answer.topic_errors] == [0]


async def _send(bootstrap: str, topic: str, value: bytes, timestamp: int | None = None) -> None:
    async with asyncio.timeout(60), AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(topic, value, timestamp_ms=timestamp)


@needs_kafka
async def test_it_keeps_topics_records_and_offsets_over_restart_and_kill(topic_prefix: str) -> None:
    with kafka.KafkaBroker() as broker:
        bootstrap = broker.bootstrap
        await _create(bootstrap, NewTopic(topic_prefix, 1, 1))
        for number, kill in enumerate([False, True]):
            await _send(bootstrap, topic_prefix, b"%d" % number)
            assert await _next(bootstrap, topic_prefix) == b"%d" % number
            pid = broker.pid
            await asyncio.to_thread(broker.restart, kill=kill)
            assert broker.bootstrap == bootstrap
            assert broker.pid != pid
        await _send(bootstrap, topic_prefix, b"2")
        assert await _next(bootstrap, topic_prefix) == b"2"
    assert not _listens(int(bootstrap.rpartition(":")[2]))


async def _next(bootstrap: str, topic: str) -> bytes | None:
    """The first record after the committed offset, which is committed in turn."""
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with asyncio.timeout(60), consumer:
        record = await consumer.getone()
        await consumer.commit({TopicPartition(topic, record.partition): record.offset + 1})
    value: bytes | None = record.value
    return value


async def test_it_stamps_records_as_the_topic_says(
    kafka_broker: kafka.KafkaBroker, topic_prefix: str
) -> None:
    appended = {"message.timestamp.type": "LogAppendTime"}
    for name, configs in ((f"{topic_prefix}-create", {}), (f"{topic_prefix}-append", appended)):
        await _create(kafka_broker.bootstrap, NewTopic(name, 1, 1, topic_configs=configs))
        await _send(kafka_broker.bootstrap, name, b"turn", timestamp=1000)
    consumer = AIOKafkaConsumer(
        f"{topic_prefix}-create",
        f"{topic_prefix}-append",
        bootstrap_servers=kafka_broker.bootstrap,
        auto_offset_reset="earliest",
    )
    async with asyncio.timeout(60), consumer:
        records = {record.topic: record for record in [await consumer.getone() for _ in range(2)]}
    assert records[f"{topic_prefix}-create"].timestamp == 1000
    assert abs(records[f"{topic_prefix}-append"].timestamp / 1000 - time.time()) < 60


async def test_it_makes_no_topic_unasked(kafka_broker: kafka.KafkaBroker, topic_prefix: str) -> None:
    async with asyncio.timeout(60), AIOKafkaProducer(bootstrap_servers=kafka_broker.bootstrap) as producer:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(producer.partitions_for(topic_prefix), 1)
        metadata = await producer.client.fetch_all_metadata()
    assert topic_prefix not in metadata.topics()


@needs_kafka
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_script_serves_until_it_ends(number: signal.Signals, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": ""}
    command = [sys.executable, str(_SCRIPT)]
    with subprocess.Popen(command, cwd="/", env=environment, stdout=subprocess.PIPE, text=True) as script:
        try:
            assert script.stdout is not None
            port = int(script.stdout.readline().rpartition(":")[2])
            assert _listens(port)
            script.send_signal(number)
            _until(lambda: script.poll() is not None)
            _until(lambda: not _listens(port))
            _until(lambda: not list(tmp_path.glob("volteface-*")))
        finally:
            script.kill()
    assert script.returncode == (0 if number == signal.SIGINT else -number)


@needs_kafka
def test_an_occupied_port_is_an_error_where_it_was_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=str(port)):
            kafka.KafkaBroker(port=port).start()


def test_missing_java_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "no `java`" in str(kafka.available())
    with pytest.raises(ServiceUnavailable, match="apt install"):
        kafka.KafkaBroker().start()


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a `java`, before everything else on PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    _program(folder / "java", "exit 0")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


def test_missing_maven_matters_only_without_the_jars(
    programs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = tmp_path / "lib"
    _program(programs / "mvn", "exit 0")
    kafka.resolve(library)
    (programs / "mvn").unlink()
    monkeypatch.setenv("PATH", str(programs))
    assert kafka.available(library) is None
    assert "no `mvn`" in str(kafka.available(tmp_path / "other"))


def test_maven_runs_once_for_two_at_once(programs: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    _program(programs / "mvn", f"echo called >>{calls}; sleep 0.3")
    threads = [threading.Thread(target=kafka.resolve, args=[tmp_path / "lib"]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert calls.read_text() == "called\n"


def test_other_jars_are_fetched_when_the_pom_changes(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "lib"
    _program(programs / "mvn", "exit 0")
    kafka.resolve(library)
    (library / "old.jar").touch()
    kafka.resolve(library)
    assert (library / "old.jar").exists()
    pom = tmp_path / "pom.xml"
    pom.write_text("<project/>")
    monkeypatch.setattr(kafka, "_POM", pom)
    kafka.resolve(library)
    assert not (library / "old.jar").exists()


def test_what_maven_says_reaches_the_error_and_it_is_asked_again(programs: Path, tmp_path: Path) -> None:
    _program(programs / "mvn", "echo the network is down; exit 1")
    with pytest.raises(ServiceUnavailable, match="status 1:\nthe network is down"):
        kafka.resolve(tmp_path / "lib")
    _program(programs / "mvn", f"touch {tmp_path}/lib/kafka.jar")
    kafka.resolve(tmp_path / "lib")
    assert (tmp_path / "lib" / "kafka.jar").exists()
