"""The sender against both brokers, and against one that goes away."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from structlog.testing import capture_logs

from stream import sender as module
from stream import topics
from stream.embedded import EmbeddedBroker
from stream.embedded.broker import Broker
from stream.outbox import FLIPS, JOURNAL, STANCES
from stream.sender import MAX_REQUEST_BYTES, Sender, SenderUnavailable
from stream.settings import Settings
from stream.store.port import Message

JOURNALS = [Message(JOURNAL, b"k", b"j%d" % number) for number in range(3)]
OTHERS = [Message(STANCES, b"k", b"s%d" % number) for number in range(3)] + [Message(FLIPS, b"k", None)]


@pytest.fixture
def settings(broker: str, topic_prefix: str, request: pytest.FixtureRequest) -> Settings:
    idempotence = "kafka" in request.node.name
    return Settings(
        broker=f"kafka://{broker}", topic_prefix=topic_prefix, partitions=2, broker_idempotence=idempotence
    )


@pytest.fixture
async def sender(settings: Settings) -> AsyncIterator[Sender]:
    await topics.ensure(settings)
    sender = Sender(settings)
    yield sender
    await sender.close()


async def stands(settings: Settings, name: str) -> list[tuple[bytes | None, dict[str, bytes]]]:
    """What a topic holds: values and headers."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.bootstrap_servers, auto_offset_reset="earliest", fetch_max_wait_ms=20
    )
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topics.topic(settings, name), number) for number in range(2)])
        found, quiet = list[tuple[bytes | None, dict[str, bytes]]](), 0
        while quiet < 4:
            batch = await consumer.getmany(timeout_ms=100)
            quiet = 0 if batch else quiet + 1
            found += [
                (record.value, dict(record.headers)) for records in batch.values() for record in records
            ]
        return found
    finally:
        await consumer.stop()


async def test_all_is_delivered_in_order(sender: Sender, settings: Settings) -> None:
    await sender.send([OTHERS[0], *JOURNALS, *OTHERS[1:]])
    assert [value for value, _ in await stands(settings, JOURNAL)] == [b"j0", b"j1", b"j2"]
    assert [value for value, _ in await stands(settings, STANCES)] == [b"s0", b"s1", b"s2"]
    assert await stands(settings, FLIPS) == [(None, {})]


async def test_headers_go_along(sender: Sender, settings: Settings) -> None:
    letter = Message("dead-letters", None, b"\xff")
    await sender.send_with_headers([(letter, [("a", b"1"), ("é", b"\xff")])])
    assert await stands(settings, "dead-letters") == [(b"\xff", {"a": b"1", "é": b"\xff"})]


async def test_journals_are_delivered_before_anything_else_is_sent(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[set[str]] = []
    original = sender.send_with_headers

    async def send(messages: object) -> None:
        given = list(messages)  # type: ignore[call-overload]
        parts.append({message.topic for message, _ in given})
        await original(given)

    monkeypatch.setattr(sender, "send_with_headers", send)
    await sender.send([*OTHERS, *JOURNALS])
    await sender.send([])
    assert parts == [{JOURNAL}, {STANCES, FLIPS}]


async def test_a_message_that_is_too_large_holds_nobody_up_and_is_told(
    sender: Sender, settings: Settings
) -> None:
    huge = Message(JOURNAL, b"tenant/room/a holder/t-1", b"x" * MAX_REQUEST_BYTES)
    with capture_logs() as logs:
        await sender.send([JOURNALS[0], huge, JOURNALS[1], *OTHERS])
    assert [value for value, _ in await stands(settings, JOURNAL)] == [b"j0", b"j1"]
    assert [value for value, _ in await stands(settings, STANCES)] == [b"s0", b"s1", b"s2"]
    told = {"topic": JOURNAL, "conversation": "tenant/room", "bytes": MAX_REQUEST_BYTES}
    assert logs == [{"event": "message.too_large", "log_level": "error", **told}]
    await sender.send(JOURNALS[2:])
    assert [value for value, _ in await stands(settings, JOURNAL)] == [b"j0", b"j1", b"j2"]


@pytest.mark.parametrize("idempotence", [True, False])
async def test_what_the_broker_finds_too_large_holds_nobody_up_either(
    kafka_broker: Broker, topic_prefix: str, idempotence: bool
) -> None:
    settings = Settings(
        broker=kafka_broker.url, topic_prefix=topic_prefix, partitions=2, broker_idempotence=idempotence
    )
    narrow = {"max.message.bytes": "20000"}
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    await admin.start()
    await admin.create_topics([NewTopic(topics.topic(settings, JOURNAL), 2, 1, topic_configs=narrow)])
    await admin.close()
    await topics.ensure(settings)
    sender = Sender(settings)
    huge = Message(JOURNAL, b"k", b"x" * 100_000)
    with capture_logs() as logs:
        await sender.send([JOURNALS[0], huge, *JOURNALS[1:]])
    await sender.close()
    assert [value for value, _ in await stands(settings, JOURNAL)] == [b"j0", b"j1", b"j2"]
    assert [entry["event"] for entry in logs] == ["message.too_large"]


async def test_a_broker_that_is_away_is_unavailable_and_soon_back(
    topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REQUEST_TIMEOUT_SECONDS", 1.0)
    monkeypatch.setattr(module, "STOP_TIMEOUT_SECONDS", 0.5)
    with EmbeddedBroker() as broker:
        settings = Settings(
            broker=broker.url, topic_prefix=topic_prefix, partitions=2, broker_idempotence=False
        )
        await topics.ensure(settings)
        sender = Sender(settings)
        await sender.send(JOURNALS)
        await asyncio.to_thread(broker.halt, kill=True)
        began = time.monotonic()
        for _ in range(2):
            with pytest.raises(SenderUnavailable):
                await sender.send(JOURNALS)
        assert time.monotonic() - began < 5.0
        await asyncio.to_thread(broker.resume)
        await topics.ensure(settings)  # Tansu forgot them
        await sender.send(JOURNALS)
        assert [value for value, _ in await stands(settings, JOURNAL)] == [b"j0", b"j1", b"j2"]
        await sender.close()
        await sender.close()


async def test_a_record_without_key_and_value_can_be_a_dead_letter(
    settings: Settings, sender: Sender
) -> None:
    await sender.send_with_headers([(Message("dead-letters", None, None), [("why", b"null")])])
    assert await stands(settings, "dead-letters") == [(None, {"why": b"null"})]
