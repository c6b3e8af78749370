import asyncio
import time

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from stream import topics
from stream.embedded.process import free_port
from stream.settings import Settings
from stream.topics import DAY_MS, TopicsUnavailable

NAMES = ["turns", "journal", "states", "stances", "flips", "alerts", "dead-letters"]


@pytest.fixture
def settings(broker: str, topic_prefix: str) -> Settings:
    return Settings(broker=f"kafka://{broker}", topic_prefix=topic_prefix, partitions=3)


def test_names_of_live_and_of_another_run() -> None:
    assert topics.topic(Settings(), "turns") == "volteface.turns"
    assert topics.topic(Settings(run="replay-1", topic_prefix="vf"), "turns") == "vf.replay-1.turns"


def test_the_table() -> None:
    table = {topic.name: topic.config for topic in topics.described(Settings(reach_days=3))}
    assert list(table) == NAMES
    assert table["turns"]["message.timestamp.type"] == "LogAppendTime"
    assert table["turns"]["retention.ms"] == str(3 * DAY_MS)
    assert table["journal"]["retention.ms"] == str(90 * DAY_MS)
    assert table["states"] == {"cleanup.policy": "compact"}
    assert {table[name]["retention.ms"] for name in NAMES[3:]} == {str(30 * DAY_MS)}


async def test_missing_topics_are_made_and_again_changes_nothing(settings: Settings) -> None:
    for _ in range(2):
        await topics.ensure(settings)
    client = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    await client.start()
    try:
        names = {topics.topic(settings, name) for name in NAMES}
        assert names <= set(await client.list_topics())
        described = await client.describe_topics(sorted(names))
        assert {len(found["partitions"]) for found in described} == {3}
    finally:
        await client.close()


async def test_the_turns_topic_stamps_its_append_time(kafka_broker: object, topic_prefix: str) -> None:
    settings = Settings(broker=kafka_broker.url, topic_prefix=topic_prefix)  # type: ignore[attr-defined]
    await topics.ensure(settings)
    client = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    await client.start()
    try:
        turns = ConfigResource(ConfigResourceType.TOPIC, topics.topic(settings, "turns"))
        [reply] = await client.describe_configs([turns])
        config = {entry[0]: entry[1] for entry in reply.resources[0][4]}
        assert config["message.timestamp.type"] == "LogAppendTime"
    finally:
        await client.close()


async def test_two_agents_may_start_together(settings: Settings) -> None:
    await asyncio.gather(*(topics.ensure(settings) for _ in range(4)))


async def test_a_refused_topic_is_said(kafka_broker: object, topic_prefix: str) -> None:
    url: str = kafka_broker.url  # type: ignore[attr-defined]
    with pytest.raises(TopicsUnavailable, match="refused by the broker"):
        await topics.ensure(Settings(broker=url, topic_prefix=topic_prefix, replication=3))


async def test_no_broker() -> None:
    began = time.monotonic()
    with pytest.raises(TopicsUnavailable, match="set VOLTEFACE_BROKER"):
        await topics.ensure(Settings(broker=f"kafka://127.0.0.1:{free_port()}"))
    assert time.monotonic() - began < 5.0
