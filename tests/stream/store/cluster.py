"""A Redis Cluster of three nodes, as small as one can be; each has a third of the slots."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from redis.asyncio import Redis

from stream.embedded import EmbeddedRedis

NODES, SLOTS = 3, 16384
PATIENCE = 60.0


class ClusterNode(EmbeddedRedis):
    """One node, which must still meet the others."""

    def _config(self, data: Path, port: int) -> Iterator[str]:
        yield from super()._config(data, port)
        yield "cluster-enabled yes"
        yield "cluster-node-timeout 2000"


@contextlib.contextmanager
def clustered() -> Iterator[list[ClusterNode]]:
    """The nodes in order of their slots, while the block runs."""
    with contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(ClusterNode()) for _ in range(NODES)]
        asyncio.run(_joined(nodes))
        yield nodes


def owner(nodes: Sequence[ClusterNode], slot: int) -> ClusterNode:
    """The node that has a slot."""
    return next(node for node, slots in zip(nodes, _shares(), strict=True) if slot in slots)


def _shares() -> list[range]:
    edges = [SLOTS * node // NODES for node in range(NODES + 1)]
    return [range(start, end) for start, end in pairwise(edges)]


async def _joined(nodes: Sequence[ClusterNode]) -> None:
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Redis.from_url(node.url)) for node in nodes]
        for client, slots in zip(clients, _shares(), strict=True):
            await client.execute_command("CLUSTER", "ADDSLOTS", *slots)
            await client.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
        async with asyncio.timeout(PATIENCE):
            for client in clients:
                while not await _whole(client):  # noqa: ASYNC110 - a node tells nobody, it must be asked
                    await asyncio.sleep(0.05)


async def _whole(client: Redis) -> bool:
    """Whether a node knows who has each slot."""
    told: bytes = await client.execute_command("CLUSTER", "INFO")
    return b"cluster_state:ok" in told
