"""Holes in the log: the markers of transactions, and records that aged out before they were read."""

import asyncio
from uuid import uuid4

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete
from structlog.testing import capture_logs

from stream import kafka, topics
from stream.settings import Settings
from tests.end_to_end.harness import LEFT_OPEN, collecting, drained, producing, running
from tests.faults.judging import committed
from tests.faults.script import script
from tests.faults.stand import Stand
from tracker import keys, records
from tracker.records import Record

pytestmark = [
    pytest.mark.filterwarnings(LEFT_OPEN),
    pytest.mark.timeout(400),
    pytest.mark.parametrize("broker_name", ["kafka"]),
]

PATIENCE_SECONDS = 60.0
TRANSACTION_RECORDS = 7


@pytest.fixture
def settings(stand: Stand) -> Settings:
    """A run of its own beside the stand's: holes would be missed by those who count its offsets."""
    stand.sound = True
    return msgspec.structs.replace(stand.settings, topic_prefix=f"test-{uuid4().hex[:12]}")


async def test_the_markers_of_transactions_hold_no_commit_up(settings: Settings) -> None:
    said = script("transactions", 60)
    async with collecting(settings) as collected, running(settings):
        ends = await in_transactions(settings, said)
        await collected.until(lambda seen: len(seen.arrivals()) == len(said), "all", PATIENCE_SECONDS)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await committed(settings) != ends:  # noqa: ASYNC110 - the broker must be asked
                await asyncio.sleep(0.1)
            await drained(settings)  # though a marker stands behind the last record


async def in_transactions(settings: Settings, said: list[Record]) -> dict[int, int]:
    """Produce in many transactions; each leaves a marker. Returns where the last records end."""
    ends: dict[int, int] = {}
    identity = {"transactional_id": settings.topic_prefix}
    async with kafka.running(AIOKafkaProducer, settings, **identity) as producer:
        for start in range(0, len(said), TRANSACTION_RECORDS):
            async with producer.transaction():
                for record in said[start : start + TRANSACTION_RECORDS]:
                    sent = await producer.send_and_wait(
                        topics.topic(settings, "turns"),
                        records.encode(record),
                        key=keys.conversation_key(record.tenant, record.conversation),
                    )
                    ends[sent.partition] = sent.offset + 1
    return ends


async def test_what_aged_out_unread_is_passed_over_and_the_rest_is_read(settings: Settings) -> None:
    read, unread = script("read", 30), script("unread", 90)
    async with collecting(settings) as collected, producing(settings) as producer:
        await producer.records(read)
        async with running(settings):
            await collected.until(lambda seen: len(seen.arrivals()) == len(read), "a beginning")
            await drained(settings)
        await producer.records(unread)
        kept = await aged_out(settings)
        with capture_logs() as logs:
            async with running(settings):
                await drained(settings)
            count = len(read) + kept
            await collected.until(lambda seen: len(seen.arrivals()) == count, "the rest", PATIENCE_SECONDS)
            await collected.rest()
    assert 0 < kept < len(unread)
    told = sum(line["records"] for line in logs if line["event"] == "turns.aged_out")
    assert told == len(unread) - kept
    assert len(collected.arrivals()) == len(collected.journal()) == count
    assert not collected.dead_letters


async def aged_out(settings: Settings) -> int:
    """Delete half of what was not read yet, as retention would; how many records are left."""
    topic, starts = topics.topic(settings, "turns"), await committed(settings)
    partitions = [TopicPartition(topic, number) for number in starts]
    async with (
        kafka.running(AIOKafkaConsumer, settings) as consumer,
        kafka.running(AIOKafkaAdminClient, settings) as admin,
    ):
        ends = await consumer.end_offsets(partitions)
        middles = {tp: (starts[tp.partition] + ends[tp]) // 2 for tp in partitions}
        await admin.delete_records({tp: RecordsToDelete(before_offset=at) for tp, at in middles.items()})
    return sum(ends[tp] - middles[tp] for tp in partitions)
