import asyncio
import itertools
from contextlib import aclosing

import pytest

from stream import topics
from stream.outbox import FLIPS, JOURNAL, STANCES
from stream.sender import Sender
from stream.settings import Settings
from stream.store.port import Message
from stream.tail import Tail, following


@pytest.fixture
async def settings(broker: str, topic_prefix: str) -> Settings:
    made = Settings(
        broker=f"kafka://{broker}", topic_prefix=topic_prefix, partitions=3, broker_idempotence=False
    )
    await topics.ensure(made)
    return made


async def send(settings: Settings, *messages: Message) -> None:
    sender = Sender(settings)
    await sender.send(messages)
    await sender.close()


async def first(tail: Tail, count: int) -> list[tuple[str, bytes]]:
    found = []
    async with asyncio.timeout(10), aclosing(tail.messages()) as messages:  # type: ignore[type-var]
        for _ in range(count):
            found.append(await anext(messages))
    return found


async def test_it_gives_what_stands_there_and_then_what_comes(settings: Settings) -> None:
    keys = [b"%d" % number for number in range(6)]  # they fall on all partitions
    await send(settings, *(Message(JOURNAL, key, b"old " + key) for key in keys))
    async with following(settings, [JOURNAL, FLIPS]) as tail:
        assert sorted(await first(tail, 6)) == [(JOURNAL, b"old " + key) for key in keys]
        await send(settings, Message(FLIPS, b"k", b"new"))
        assert await first(tail, 1) == [(FLIPS, b"new")]


async def test_order_is_kept_inside_a_partition_and_tombstones_and_other_topics_are_left_out(
    settings: Settings,
) -> None:
    values = [b"1", None, b"2", b"3"]
    await send(settings, *(Message(FLIPS, b"k", value) for value in values), Message(STANCES, b"k", b"x"))
    async with following(settings, [FLIPS]) as tail:
        assert await first(tail, 3) == list(zip(itertools.repeat(FLIPS), [b"1", b"2", b"3"], strict=False))
