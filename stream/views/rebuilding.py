"""Rebuilding the views: everything that the topics still hold is fed again, and all is counted anew.

Events keep the positions that they have, so what a subscriber resumes from stays valid; those that were
lacking come behind the newest. Feeders may go on meanwhile: their offsets are left alone. Where `views` is
empty, a rebuild goes before the feeders, else new events come before old ones.
"""

import asyncio

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from stream.admin import Admin
from stream.history import FETCH_WAIT_MS, History
from stream.kafka import in_words, running
from stream.settings import Settings
from stream.topics import topic
from stream.views.feeder import BATCH
from stream.views.port import Views
from stream.views.reading import FED
from stream.views.storing import Counts, Storing

log = structlog.get_logger(__name__)

CALL_SECONDS = 30.0
_OPTIONS = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": FETCH_WAIT_MS}


class RebuildFailed(Exception):
    """The topics cannot be read to their end now; what was fed until then stays."""


async def rebuild(settings: Settings, views: Views) -> Counts:
    """Feed all that the run's topics hold. Raises RebuildFailed and DatabaseUnavailable."""
    storing = Storing(settings.run, views)
    try:
        async with (
            running(Admin, settings) as admin,
            running(AIOKafkaConsumer, settings, **_OPTIONS) as consumer,
        ):
            history = History(settings, admin, consumer, await _partitions(settings, admin))
            for name in FED:
                async for messages in history.messages(name):
                    for start in range(0, len(messages), BATCH):
                        part = messages[start : start + BATCH]
                        await storing.put([*storing.entries(name, part)], {})
    except (KafkaError, TimeoutError, OSError) as error:
        raise RebuildFailed(f"the topics cannot be read: {in_words(error)}") from error
    await views.recount()
    log.info("views.rebuilt", run=settings.run, messages=storing.counts.messages)
    return storing.counts


async def _partitions(settings: Settings, admin: Admin) -> dict[str, int]:
    """How many partitions each topic has. Raises RebuildFailed where one is missing."""
    names = [topic(settings, name) for name in FED]
    async with asyncio.timeout(CALL_SECONDS):
        missing = sorted(set(names) - set(await admin.list_topics()))
        if missing:
            remedy = "name the run in VOLTEFACE_RUN, or start `volteface agent`, which makes them"
            raise RebuildFailed(f"run {settings.run} has no topic {', '.join(missing)}: {remedy}")
        return {one["topic"]: len(one["partitions"]) for one in await admin.describe_topics(names)}
