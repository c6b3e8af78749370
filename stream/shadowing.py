"""A shadow: a run that is given another run's turns as they come, to try a reader or a policy on them.

They are copied, with their keys, into the shadow's own turns topic, from the oldest that the other's holds.
So a shadow is a run like any other: its agents, states, journal and events are its own, and all that happens
to the other run is that its turns are read. A record that is copied twice changes nothing twice.
"""

import asyncio
from collections.abc import Sequence

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import CommitFailedError, KafkaError, RebalanceInProgressError

from stream.admin import Admin
from stream.kafka import in_words, running
from stream.lag import group
from stream.outbox import TURNS
from stream.sender import Sender, SenderUnavailable
from stream.settings import Settings
from stream.store.port import Message
from stream.topics import topic

log = structlog.get_logger(__name__)

RECORDS = 500  # copied before they are committed
POLL_MS = 200
FETCH_WAIT_MS = 50
CALL_SECONDS = 30.0
RETRY_SECONDS = 1.0


class ShadowFailed(Exception):
    """Nothing can be copied; says why, and what to do."""


def copying(shadow: Settings) -> str:
    """The consumer group that copies for a shadow; no run's agents have a name with that dot."""
    return f"{group(shadow)}.shadow"


async def follow(source: Settings, shadow: Settings, stop: asyncio.Event) -> int:
    """Copy until `stop`; returns how many. It goes on where it was left, and waits for a broker that is away.

    Raises ShadowFailed.
    """
    if source.run == shadow.run:
        raise ShadowFailed(f"run {shadow.run} cannot be its own shadow: name another")
    options = {
        "group_id": copying(shadow),
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": FETCH_WAIT_MS,
        "session_timeout_ms": int(shadow.rebalance_seconds * 1000),
        "heartbeat_interval_ms": int(min(3.0, shadow.rebalance_seconds / 3) * 1000),
    }
    sender = Sender(shadow)
    try:
        await _require_topic(source)
        async with running(AIOKafkaConsumer, shadow, **options) as consumer:
            consumer.subscribe([topic(source, TURNS)])
            return await _copy(consumer, sender, stop)
    except (KafkaError, TimeoutError, OSError) as error:
        raise ShadowFailed(f"the turns of run {source.run} cannot be copied: {in_words(error)}") from error
    finally:
        await sender.close()


async def _require_topic(source: Settings) -> None:
    """Asked for by name, a topic that is missing might be made."""
    async with running(Admin, source) as admin, asyncio.timeout(CALL_SECONDS):
        existing = await admin.list_topics()
    if topic(source, TURNS) not in existing:
        remedy = "start `volteface agent` for that run first, which makes it"
        raise ShadowFailed(f"run {source.run} has no topic {topic(source, TURNS)}: {remedy}")


async def _copy(consumer: AIOKafkaConsumer, sender: Sender, stop: asyncio.Event) -> int:
    copied = 0
    while not stop.is_set():
        async with asyncio.timeout(CALL_SECONDS):
            batches = await consumer.getmany(timeout_ms=POLL_MS, max_records=RECORDS)
        messages = [Message(TURNS, one.key, one.value) for batch in batches.values() for one in batch]
        if messages and await _delivered(sender, messages, stop):
            copied += len(messages)
            await _committed(consumer)
    return copied


async def _delivered(sender: Sender, messages: Sequence[Message], stop: asyncio.Event) -> bool:
    """Send until delivered, however long the broker is away; False where the word to stop came before."""
    while not stop.is_set():
        try:
            await sender.send(messages)
        except SenderUnavailable as error:
            log.warning("shadow.paused", error=str(error))
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return True
    return False


async def _committed(consumer: AIOKafkaConsumer) -> None:
    """What is not committed is copied again."""
    try:
        async with asyncio.timeout(CALL_SECONDS):
            await consumer.commit()
    except (CommitFailedError, RebalanceInProgressError) as error:  # another copier has its partition now
        log.info("shadow.commit_lost", error=type(error).__name__)
    except (KafkaError, TimeoutError) as error:
        log.warning("shadow.paused", error=in_words(error))
