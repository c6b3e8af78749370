"""Whether Kafka lets an agent join its group, asked before it starts: Faust would wait for that for ever.

What else is denied is met in time: topics when they are made, reading when the app starts, and writing when
something is sent.
"""

import asyncio

import structlog
from aiokafka.errors import GroupAuthorizationFailedError, KafkaError, for_code
from aiokafka.protocol.group import HeartbeatRequest

from stream import lag
from stream.admin import Admin
from stream.history import of_group
from stream.kafka import in_words, running
from stream.settings import Settings

log = structlog.get_logger(__name__)

ASK_SECONDS = 5.0


class NotAllowed(Exception):
    """The broker denies what every agent needs: what it said, and the remedy."""


async def check(settings: Settings, seconds: float = ASK_SECONDS) -> bool:
    """Whether the broker said that the run's group may be joined; where it did not answer, nobody knows.

    Raises NotAllowed where the group may not be described and read.
    """
    try:
        async with asyncio.timeout(seconds), running(Admin, settings) as admin:
            await _ask(admin, lag.group(settings))
    except GroupAuthorizationFailedError as error:
        raise NotAllowed(in_words(error)) from error
    except (KafkaError, TimeoutError, OSError) as error:
        log.warning("group.unknown", error=in_words(error))
        return False
    return True


async def _ask(admin: Admin, group: str) -> None:
    """A heartbeat of nobody changes nothing, and needs the right to be a member."""
    node = await of_group(lambda: admin.find_coordinator(group))
    answer = await admin._send_request(HeartbeatRequest(group, -1, ""), node)
    if answer.error_code == GroupAuthorizationFailedError.errno:
        raise for_code(answer.error_code)(f"group {group}")
