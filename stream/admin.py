"""aiokafka's admin client, made to ask another broker where one is away.

It puts a question that any broker can answer to one of them by chance, and fails if that one is down, though
the others would answer: with one of three brokers dead, every third agent could not start. One that stands
still takes no answer from the others, either.
"""

import asyncio
import random
from contextlib import suppress
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import NodeNotReadyError, RequestTimedOutError

ANSWER_SECONDS = 5.0  # from a broker that is not the last to ask


class Admin(AIOKafkaAdminClient):  # type: ignore[misc]  # aiokafka ships no types
    """Asks brokers in any order until one answers."""

    async def _send_request(self, request: Any, node_id: int | None = None) -> Any:
        if node_id is not None:
            return await super()._send_request(request, node_id)
        nodes = [broker.nodeId for broker in self._client.cluster.brokers()]
        *others, last = random.sample(nodes, len(nodes)) or [None]
        for node in others:
            with suppress(NodeNotReadyError, RequestTimedOutError, TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await super()._send_request(request, node)
        return await super()._send_request(request, last)
