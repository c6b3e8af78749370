"""aiokafka's admin client, made to ask another broker where one is away.

It puts a question that any broker can answer to one of them by chance, and fails if that one is down, though
the others would answer: with one of three brokers dead, every third agent could not start.
"""

import random
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import NodeNotReadyError


class Admin(AIOKafkaAdminClient):  # type: ignore[misc]  # aiokafka ships no types
    """Asks brokers in any order until one answers."""

    async def _send_request(self, request: Any, node_id: int | None = None) -> Any:
        if node_id is not None:
            return await super()._send_request(request, node_id)
        nodes = [broker.nodeId for broker in self._client.cluster.brokers()]
        *others, last = random.sample(nodes, len(nodes)) or [None]
        for node in others:
            try:
                return await super()._send_request(request, node)
            except NodeNotReadyError:  # nothing was sent
                continue
        return await super()._send_request(request, last)
