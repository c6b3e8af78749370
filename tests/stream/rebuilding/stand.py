"""A run whose records go through a processor here, and what is said in it."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from redis.asyncio import Redis

from models.reader import Reader
from stream import lag, rebuilding, topics
from stream.chain import Item
from stream.delivery import deliver
from stream.outbox import JOURNAL
from stream.processor import Processor
from stream.putting import Report
from stream.sender import Sender
from stream.settings import Settings
from stream.store.port import Message
from stream.store.redis import RedisStore
from tests.stream.fakes import START, CountingReader, target, turn
from tests.stream.store.dump import dump
from tracker import keys, records
from tracker.clock import Clock
from tracker.conversation import Rules
from tracker.records import ClearTurns, DeleteTurn, EditTurn, EraseHolder, OverrideStance, Record
from tracker.stances import Stance

LATER = START + dt.timedelta(minutes=5)
ABOUT: dict[str, Any] = {"conversation": "a", "sent_at": LATER}
WORD: dict[str, Any] = ABOUT | {"by": "mod", "reason": "asked"}
X = keys.target_id("default", "a", "whether x")
COURSE: list[Record] = [
    target(),
    target("b"),
    EditTurn(**ABOUT, turn="later", text="+1 waits", revision=3),
    EditTurn(**ABOUT, turn="never", text="-1 waits for ever"),
    *(turn(str(n), text, seconds=10 * n) for n, text in enumerate(["+1", "x", "-1", "+1", "+0"])),
    *(turn(f"bo-{n}", "-1", holder="bo", seconds=100 + n) for n in range(2)),
    *(turn(f"cy-{n}", "+1", holder="cy", seconds=110 + n) for n in range(2)),
    turn("late", "-1", seconds=15),
    turn("later", "-1", seconds=120),
    *(turn(f"b-{n}", "-1" if n % 5 else "+1", room="b", seconds=n, language="en") for n in range(20)),
    target(proposition="whether y"),
    EditTurn(**ABOUT, turn="0", text="-1"),
    DeleteTurn(**ABOUT, turn="3"),
    OverrideStance(**WORD, id="word", to=Stance.NEUTRAL, turn="4"),
    OverrideStance(**WORD, id="pin", to=Stance.NEUTRAL, holder="cy", target=X),
    turn("cy-9", "-1", holder="cy", seconds=200),
    OverrideStance(**WORD, id="unpin", to=None, holder="cy", target=X),
    EraseHolder(**ABOUT, id="erase", holder="bo"),
    turn("bo-3", "+1", holder="bo", seconds=210),
    ClearTurns(**ABOUT, id="clear", holder="cy"),
    EditTurn(conversation="b", sent_at=LATER, turn="b-19", text="+1 after all"),
    turn("b-20", "+1", room="b", seconds=12.5),
    turn("c-1", "+1", room="c/ü"),
]
SIZE = len({record.conversation for record in COURSE})


class Lossy(Sender):
    """A sender that loses some journal entries, as if their time had passed, or they were too large."""

    loses = False

    async def send(self, messages: Sequence[Message]) -> None:
        await super().send([one for one in messages if one.topic != JOURNAL or not self.loses])


class Stand:
    """A run on real servers, whose records go through a processor here."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.sender, self.items = settings, Lossy(settings), list[Item]()
        self.stores = list[RedisStore]()

    async def produce(self, given: Sequence[Record]) -> None:
        """In one batch a partition: Tansu lists its end as if it held one record."""
        producer = AIOKafkaProducer(bootstrap_servers=self.settings.bootstrap_servers, linger_ms=50)
        await producer.start()
        name = topics.topic(self.settings, "turns")
        try:
            sent = [
                await producer.send(
                    name, records.encode(one), key=keys.conversation_key(one.tenant, one.conversation)
                )
                for one in given
            ]
            for record, place in zip(given, await asyncio.gather(*sent), strict=True):
                source = f"{name}/{place.partition}/{place.offset}"
                self.items.append(Item(len(self.items), record, source))
        finally:
            await producer.stop()

    def store(self) -> RedisStore:
        prefix = self.settings.topic_prefix
        self.stores.append(RedisStore(self.settings.redis, self.settings.run, prefix=prefix, timeout=20.0))
        return self.stores[-1]

    def processing(self, store: RedisStore) -> Any:
        rules = Rules(clock=Clock(reach=dt.timedelta(days=self.settings.reach_days)))

        def made(reader: Reader) -> Processor:
            return Processor(store, reader, rules, live=self.settings.run == "live")

        return made

    async def apply(self, items: Sequence[Item], *, at_once: int = 7) -> None:
        store = self.store()
        for start in range(0, len(items), at_once):
            result = await self.processing(store)(CountingReader()).process(items[start : start + at_once])
            assert not result.refusals
            await deliver(result.outboxes, store, self.sender)

    async def live(self, given: Sequence[Record] = tuple(COURSE), **rest: int) -> dict[bytes, object]:
        """All records, applied and committed as finished; returns what Redis holds then."""
        await self.produce(given)
        await self.apply(self.items, **rest)
        await self.finished()
        return await self.dump()

    async def finished(self, *upto: int) -> None:
        """Commit offsets by partition as the agents' group does; default: all."""
        name, ends = topics.topic(self.settings, "turns"), dict(enumerate(upto))
        for item in self.items if not upto else ():
            _, partition, offset = item.source.split("/")
            ends[int(partition)] = max(ends.get(int(partition), 0), int(offset) + 1)
        group = {"group_id": lag.group(self.settings), "enable_auto_commit": False}
        consumer = AIOKafkaConsumer(bootstrap_servers=self.settings.bootstrap_servers, **group)
        await consumer.start()
        try:
            places = {TopicPartition(name, partition): offset for partition, offset in ends.items()}
            consumer.assign(list(places))
            await consumer.commit(places)
        finally:
            await consumer.stop()

    async def dump(self) -> dict[bytes, object]:
        """What Redis holds of the run, but for what it has not delivered."""
        found = await dump(self.settings.redis, self.settings.run, self.settings.topic_prefix)
        return {name: content for name, content in found.items() if not name.endswith(b":outbox")}

    async def saved(self) -> dict[bytes, bytes]:
        """The run's keys, as Redis can put them back."""
        names = await self.dump()
        async with Redis.from_url(self.settings.redis, protocol=2) as client:
            return {name: await client.dump(name) for name in names}

    async def reset(self, saved: dict[bytes, bytes] | None = None) -> None:
        """Redis loses everything, or all but an old copy."""
        names = await dump(self.settings.redis, self.settings.run, self.settings.topic_prefix)
        async with Redis.from_url(self.settings.redis, protocol=2) as client:
            if names:
                await client.delete(*names)
            for name, content in (saved or {}).items():
                await client.restore(name, 0, content)

    async def rebuild(self, **options: bool) -> Report:
        return await rebuilding.run(self.settings, self.store(), **options)

    async def close(self) -> None:
        await self.sender.close()
        for store in self.stores:
            await store.close()


@contextlib.asynccontextmanager
async def standing(settings: Settings) -> AsyncIterator[Stand]:
    await topics.ensure(settings)
    made = Stand(settings)
    try:
        yield made
    finally:
        await made.reset()
        await made.close()
