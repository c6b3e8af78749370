"""Gives users of Apache Kafka their rights (KIP-140, KIP-290)."""

import asyncio
import enum

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest

PATIENCE_SECONDS = 20.0


class Kind(enum.IntEnum):
    """Of a resource, as the protocol numbers them."""

    topic = 2
    group = 3


class Operation(enum.IntEnum):
    """What may be done, as the protocol numbers it."""

    Read = 3
    Write = 4
    Create = 5
    Delete = 6
    Describe = 8
    DescribeConfigs = 10


_PREFIXED, _ALLOW = 4, 3


async def allow(bootstrap: str, user: str, kind: str, prefix: str, *operations: str) -> None:
    """Let a user do these things with all resources whose names begin so."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            for operation in operations:
                answer = await admin._send_to_controller(
                    CreateAclsRequest(
                        Kind[kind], prefix, _PREFIXED, f"User:{user}", "*", Operation[operation], _ALLOW
                    )
                )
                [(code, said)] = answer.creation_responses
                assert not code, said
    finally:
        await admin.close()
