"""Whether Kafka lets an agent join its group, asked before it starts: Faust would wait for that for ever.

What else is denied is met in time: topics when they are made, reading when the app starts, and writing when
something is sent.
"""

import asyncio

from aiokafka.errors import GroupAuthorizationFailedError, KafkaError, for_code
from aiokafka.protocol.group import HeartbeatRequest

from stream import lag
from stream.admin import Admin
from stream.history import of_group
from stream.kafka import in_words, running
from stream.settings import Settings

ASK_SECONDS = 30.0


class NotAllowed(Exception):
    """The broker denies what every agent needs: what it said, and the remedy."""


async def check(settings: Settings) -> None:
    """Raises NotAllowed where the run's group may not be described and read.

    A broker that does not answer is no matter of rights, and passes.
    """
    try:
        async with asyncio.timeout(ASK_SECONDS), running(Admin, settings) as admin:
            await _ask(admin, lag.group(settings))
    except GroupAuthorizationFailedError as error:
        raise NotAllowed(in_words(error)) from error
    except (KafkaError, TimeoutError, OSError):
        return


async def _ask(admin: Admin, group: str) -> None:
    """A heartbeat of nobody changes nothing, and needs the right to be a member."""
    node = await of_group(lambda: admin.find_coordinator(group))
    answer = await admin._send_request(HeartbeatRequest(group, -1, ""), node)
    if answer.error_code == GroupAuthorizationFailedError.errno:
        raise for_code(answer.error_code)(f"group {group}")
