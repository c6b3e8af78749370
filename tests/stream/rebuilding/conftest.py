"""Runs to be rebuilt, on each real broker and one Redis."""

from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from stream.embedded import EmbeddedRedis
from stream.settings import Settings
from tests.stream.rebuilding.stand import Stand, standing


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """One Redis: that its versions agree is tested with the store."""
    with EmbeddedRedis() as server:
        yield server.url


@pytest.fixture
def settings(broker: str, redis_url: str, topic_prefix: str) -> Settings:
    return Settings(
        broker=f"kafka://{broker}", redis=redis_url, topic_prefix=topic_prefix, partitions=2, run="r",
        broker_idempotence=False,
    )  # fmt: skip


@pytest.fixture
async def stand(settings: Settings) -> AsyncIterator[Stand]:
    async with standing(settings) as made:
        yield made


@pytest.fixture
async def line(settings: Settings) -> AsyncIterator[Stand]:
    """A run of one partition: its records have one order."""
    async with standing(msgspec.structs.replace(settings, partitions=1)) as made:
        yield made
