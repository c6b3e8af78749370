"""The topics of a run: their names, how long they keep, and making them."""

import asyncio
from dataclasses import dataclass
from typing import Literal

import structlog
from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from stream.admin import Admin
from stream.kafka import denied, in_words, running
from stream.settings import Settings
from tracker import keys

log = structlog.get_logger(__name__)

Name = Literal["turns", "journal", "states", "stances", "flips", "alerts", "dead-letters"]

DAY_MS = 24 * 60 * 60 * 1000
CREATE_TIMEOUT_SECONDS = 30.0
LEADER_POLL_SECONDS = 0.05
_TOPIC_ALREADY_EXISTS = TopicAlreadyExistsError.errno


class TopicsUnavailable(Exception):
    """The run's topics could be neither found nor made."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One of a run's topics, and its configuration."""

    name: Name
    config: dict[str, str]


def described(settings: Settings) -> tuple[Topic, ...]:
    """The topics of DESIGN.md's table."""
    return (
        # Append time, so that a sender's clock decides neither lateness nor retention.
        Topic("turns", _days(settings.reach_days) | {"message.timestamp.type": "LogAppendTime"}),
        Topic("journal", _days(90)),
        Topic("states", {"cleanup.policy": "compact"}),
        Topic("stances", _days(30)),
        Topic("flips", _days(30)),
        Topic("alerts", _days(30)),
        Topic("dead-letters", _days(30)),
    )


def topic(settings: Settings, name: str) -> str:
    """The full name of one of the run's topics."""
    return keys.topic(settings.topic_prefix, settings.run, name)


async def ensure(settings: Settings) -> None:
    """Make the run's topics where they are missing, and wait until they lead. Raises TopicsUnavailable."""
    wanted = [
        NewTopic(
            topic(settings, described_topic.name),
            settings.partitions,
            settings.replication,
            topic_configs=described_topic.config,
        )
        for described_topic in described(settings)
    ]
    try:
        async with asyncio.timeout(CREATE_TIMEOUT_SECONDS), running(Admin, settings) as client:
            existing = set(await client.list_topics())
            await _create(client, [new for new in wanted if new.name not in existing])
    except (KafkaError, TimeoutError, OSError) as error:
        raise TopicsUnavailable(f"topics of run {settings.run}: {in_words(error)}") from error


async def _create(client: Admin, missing: list[NewTopic]) -> None:
    if not missing:
        return
    response = await client.create_topics(missing)
    for name, code, *rest in response.topic_errors:
        if code not in (0, _TOPIC_ALREADY_EXISTS):
            said = f"topic {name} was refused by the broker: code {code} {rest}"
            raise TopicsUnavailable(f"{said}{denied(for_code(code)())}")
    await _led(client, [new.name for new in missing])
    log.info("topics.made", count=len(missing))


async def _led(client: Admin, names: list[str]) -> None:
    """Wait until every partition has a leader: a broker answers a create before it has spread the news."""
    while True:
        described_topics = await client.describe_topics(names)
        partitions = [partition for topic in described_topics for partition in topic["partitions"]]
        known = {topic["topic"] for topic in described_topics if not topic["error_code"]}
        if known == set(names) and all(partition["leader"] >= 0 for partition in partitions):
            return
        await asyncio.sleep(LEADER_POLL_SECONDS)


def _days(days: int) -> dict[str, str]:
    return {"cleanup.policy": "delete", "retention.ms": str(days * DAY_MS)}
