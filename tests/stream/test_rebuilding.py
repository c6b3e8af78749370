"""A run's state comes back into an emptied or lagging Redis from its topics, byte for byte."""

import asyncio
import contextlib
import datetime as dt
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from redis.asyncio import Redis
from structlog.testing import capture_logs

from models.reader import Reader
from stream import history, lag, putting, rebuilding, restore, steps, topics, unfinished
from stream.chain import Item
from stream.delivery import deliver
from stream.embedded import EmbeddedRedis
from stream.outbox import JOURNAL, STATES
from stream.processor import Processor
from stream.putting import Report
from stream.rebuilding import RebuildFailed
from stream.restore import Restorer
from stream.sender import Sender
from stream.settings import Settings
from stream.store.port import Commit, ConversationKey, Message, Need, StoreUnavailable
from stream.store.redis import RedisStore
from tests.stream.fakes import START, CountingReader, MemorySender, target, turn
from tests.stream.store.dump import dump
from tracker import keys, records
from tracker.clock import Clock
from tracker.conversation import Rules
from tracker.records import ClearTurns, DeleteTurn, EditTurn, EraseHolder, OverrideStance, Record
from tracker.stances import Stance

pytestmark = pytest.mark.filterwarnings(
    r"ignore:.*(AIOKafka\w+|StreamWriter)\.__del__:pytest.PytestUnraisableExceptionWarning"
)

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


@contextlib.asynccontextmanager
async def standing(settings: Settings) -> AsyncIterator[Stand]:
    await topics.ensure(settings)
    made = Stand(settings)
    try:
        yield made
    finally:
        await made.reset()
        await made.close()


@pytest.fixture
async def stand(settings: Settings) -> AsyncIterator[Stand]:
    async with standing(settings) as made:
        yield made


@pytest.fixture
async def line(settings: Settings) -> AsyncIterator[Stand]:
    """A run of one partition: its records have one order."""
    async with standing(msgspec.structs.replace(settings, partitions=1)) as made:
        yield made


async def test_an_emptied_redis_holds_what_it_held(stand: Stand) -> None:
    before = await stand.live()
    assert len(before) > 4 * SIZE
    await stand.reset()
    report = await stand.rebuild()
    assert await stand.dump() == before
    assert report == Report(rebuilt=SIZE)
    assert await stand.rebuild() == Report(left=SIZE)
    assert await stand.dump() == before


@pytest.mark.parametrize("step", [3, 5000])
@pytest.mark.parametrize("kept", [9, 17, 41, len(COURSE) - 1])
async def test_a_redis_that_lags_holds_what_it_held(
    stand: Stand, kept: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "STEP", step)
    monkeypatch.setattr(putting, "FLUSH_ENTRIES", 4)
    await stand.produce(COURSE)
    await stand.apply(stand.items[:kept])
    saved = await stand.saved()
    await stand.apply(stand.items[kept:])
    await stand.finished()
    before = await stand.dump()
    await stand.reset(saved)
    assert await stand.dump() != before
    await stand.rebuild()
    assert await stand.dump() == before


async def test_what_is_not_committed_as_finished_is_left_to_the_agents(line: Stand) -> None:
    await line.produce(COURSE)
    places, after = (0, 1, 12, 36, len(COURSE) - 1, len(COURSE)), {}
    for start, end in itertools.pairwise(places):
        await line.apply(line.items[start:end])
        after[end] = await line.dump()
    for finished in reversed(places[1:-1]):
        await line.finished(finished)
        await line.reset()
        report = await line.rebuild()
        assert await line.dump() == after[finished], finished
        assert report.unfinished == 0
        assert report.rebuilt + report.awaited == SIZE
        reader, sender, store = CountingReader(), MemorySender(), line.store()
        restorer = Restorer(line.settings, store, reader, sender, line.processing(store))
        assert [one async for one in restorer.restore([0], lambda _: True)] == [(0, None)]
        assert await line.dump() == after[len(COURSE)]
        assert sender.of(JOURNAL) == []
        assert reader.observed == []


async def test_a_group_that_committed_nothing_makes_all_of_it_itself(line: Stand) -> None:
    await line.produce(COURSE[:5])
    await line.apply(line.items)
    await line.reset()
    assert await line.rebuild() == Report(awaited=1 + any(one.conversation == "b" for one in COURSE[:5]))
    assert await line.dump() == {}


async def test_more_than_an_agent_puts_back_is_taken_as_it_is(
    line: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "MOST", 20)
    before = await line.live()
    await line.finished(5)
    await line.reset()
    with capture_logs() as logged:
        assert (await line.rebuild()).rebuilt == SIZE
    assert await line.dump() == before
    [told] = [one for one in logged if one["event"] == "rebuild.too_much_unfinished"]
    assert told["partition"] == 0
    assert told["at_least"] > 20


async def test_offsets_of_an_earlier_life_of_the_topic_hold_nothing_back(line: Stand) -> None:
    """Another record stands at the places that the journal tells."""
    await line.produce([turn("other"), *COURSE])
    shifted = [Item(item.index, item.record, line.items[item.index - 1].source) for item in line.items[1:]]
    await line.apply(shifted)
    before = await line.dump()
    await line.finished(2)
    await line.reset()
    report = await line.rebuild()
    after = await line.dump()
    assert (report.rebuilt, report.without_text) == (SIZE, SIZE)
    assert {name: kept for name, kept in after.items() if b":states" in name or b":header" in name} == {
        name: kept for name, kept in before.items() if b":states" in name or b":header" in name
    }


@pytest.mark.parametrize("lost", [3, 30])
async def test_without_the_journals_beginning_states_come_from_their_topic(line: Stand, lost: int) -> None:
    await line.produce(COURSE)
    line.sender.loses = True
    await line.apply(line.items[:lost])
    line.sender.loses = False
    await line.apply(line.items[lost:])
    await line.finished()
    before = await line.dump()
    await line.reset()
    await line.rebuild()
    after = await line.dump()
    assert after.keys() == before.keys()
    for name, kept in before.items():
        if name.endswith((b":header", b":states")):
            assert after[name] == kept
        elif name.endswith(b":ledger"):
            held: Any = after[name]
            assert set(held.items()) <= set(kept.items())  # type: ignore[attr-defined]


async def test_where_the_version_before_is_not_told_the_newest_is_taken(line: Stand) -> None:
    given = [target(), turn("1", "+1"), turn("2", "-1", seconds=1)]
    await line.produce(given)
    line.sender.loses = True
    await line.apply(line.items[:2])
    line.sender.loses = False
    await line.apply(line.items[2:])
    await line.finished(2)
    await line.reset()
    with capture_logs() as logged:
        assert await line.rebuild() == Report(rebuilt=1, without_text=0, unfinished=1)
    assert {"rebuild.unfinished_taken"} <= {one["event"] for one in logged}
    store = line.store()
    [kept] = await store.load([need("a", "ann")])
    assert kept.conversation.header.version == 3
    assert kept.conversation.holders["ann"][X].stance is Stance.OPPOSE


def need(room: str, *holders: str) -> Need:
    return Need(ConversationKey("default", room), frozenset(holders))


async def test_who_was_erased_does_not_come_back(line: Stand) -> None:
    before = await line.live()
    [states] = [kept for name, kept in before.items() if b"/a}" in name and name.endswith(b":states")]
    await line.reset()
    await line.sender.send(
        [Message(STATES, keys.holder_key("default", "a", "bo", X), None)]  # it was compacted, and sent again
    )
    await line.rebuild()
    assert await line.dump() == before
    assert isinstance(states, dict)


async def test_a_text_that_is_no_longer_there_leaves_its_place_empty(line: Stand) -> None:
    await line.produce([target(), turn("1", "+1"), turn("2", "-1", seconds=1)])
    first, second, third = line.items
    await line.apply([first, Item(1, second.record, "gone/0/1"), third])
    await line.finished()
    await line.reset()
    assert await line.rebuild() == Report(rebuilt=1, without_text=1)
    [kept] = await line.store().load([need("a")])
    assert [seen.turn for seen in kept.conversation.window] == ["2"]


async def test_texts_far_apart_are_found(line: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SKIP", 2)
    monkeypatch.setattr("stream.scratch.PAGE", 3)
    before = await line.live()
    await line.reset()
    await line.rebuild()
    assert await line.dump() == before


async def test_what_is_none_of_ours_is_told_and_passed_over(stand: Stand) -> None:
    before = await stand.live()
    owner = keys.conversation_key("default", "a")
    await stand.sender.send(
        [
            Message(JOURNAL, b"k", b"not ours"),
            Message(JOURNAL, owner, None),
            Message(STATES, b"k", b"not ours"),
            Message(STATES, b"", b"no key"),
            Message(STATES, owner, None),
            Message(STATES, b"default/a/\xff/t", None),
            Message(STATES, owner, b'{"tenant":"default"}'),
        ]
    )
    await stand.reset()
    with capture_logs() as logged:
        await stand.rebuild()
    assert await stand.dump() == before
    told = [one for one in logged if one["event"] == "rebuild.unreadable"]
    assert len(told) == 7
    assert {*told[0]} == {"event", "topic", "partition", "offset", "log_level"}


async def test_agents_that_run_are_not_disturbed(stand: Stand) -> None:
    before = await stand.live()
    await stand.reset()
    member = AIOKafkaConsumer(
        topics.topic(stand.settings, "turns"),
        bootstrap_servers=stand.settings.bootstrap_servers,
        group_id=lag.group(stand.settings),
        enable_auto_commit=False,
    )
    await member.start()
    try:
        with pytest.raises(RebuildFailed, match="run r has 1 agents: end all of them"):
            await stand.rebuild()
    finally:
        await member.stop()
    assert await stand.dump() == {}
    assert before


async def test_a_dry_run_changes_nothing_and_says_the_same(stand: Stand) -> None:
    before = await stand.live()
    await stand.reset()
    said = await stand.rebuild(dry=True)
    assert await stand.dump() == {}
    assert said == await stand.rebuild()
    assert await stand.dump() == before


async def test_two_at_once_do_no_harm(stand: Stand) -> None:
    before = await stand.live()
    await stand.reset()
    one, other = await asyncio.gather(stand.rebuild(), stand.rebuild())
    assert await stand.dump() == before
    assert one.rebuilt + other.rebuilt >= SIZE
    assert one.rebuilt + one.left == other.rebuilt + other.left == SIZE


async def wrong(stand: Stand, room: str, part: str) -> None:
    """A key of that conversation holds what no command of the store's can work on."""
    async with Redis.from_url(stand.settings.redis, protocol=2) as client:
        prefix, run = stand.settings.topic_prefix, stand.settings.run
        await client.set(keys.redis_key(prefix, run, "default", room, part), "x")


def failed(logged: Sequence[Any]) -> list[Any]:
    return [one for one in logged if one["event"] == "rebuild.failed"]


@pytest.mark.parametrize("part", ["header", "reach"], ids=["at loading", "at committing"])
async def test_what_redis_fails_on_does_not_end_the_others(stand: Stand, part: str) -> None:
    before = await stand.live()
    await stand.reset()
    await wrong(stand, "a", part)
    with capture_logs() as logged:
        assert await stand.rebuild() == Report(rebuilt=SIZE - 1, failed=1)
    about = {"event": "rebuild.failed", "log_level": "error"}
    assert failed(logged) == [about | {"conversation": "default/a", "error": "ResponseError"}]
    after = await stand.dump()
    assert {name: kept for name, kept in before.items() if b"/a}" not in name} == {
        name: kept for name, kept in after.items() if b"/a}" not in name
    }
    await stand.reset()
    assert await stand.rebuild() == Report(rebuilt=SIZE)
    assert await stand.dump() == before


@pytest.mark.parametrize("finished", [True, False], ids=["finished", "unfinished"])
async def test_a_conversation_that_does_not_add_up_does_not_end_the_others(
    line: Stand, finished: bool
) -> None:
    await line.produce(COURSE)
    far = f"{topics.topic(line.settings, 'turns')}/0/{10**30}"  # no place that a scratch file can take
    given = [
        Item(item.index, item.record, far if item.record.conversation == "b" else item.source)
        for item in line.items
    ]
    await line.apply(given)
    await line.finished(len(COURSE) if finished else len(COURSE) - 1)
    await line.reset()
    with capture_logs() as logged:
        report = await line.rebuild()
    assert (report.failed, report.rebuilt + report.awaited) == (1, SIZE - 1)
    [told] = failed(logged)
    assert (told["conversation"], told["error"]) == ("default/b", "OverflowError")


class Ending(RedisStore):
    """Redis is gone after so many commits."""

    left = 0

    async def commit(self, commits: Sequence[Commit]) -> list[bool]:
        self.left -= len(commits)
        await self.ping()
        return await super().commit(commits)

    async def ping(self) -> None:
        if self.left < 0:
            raise StoreUnavailable("Redis: gone")
        await super().ping()


async def ended(stand: Stand, left: int) -> bool:
    """Whether a rebuild is ended by a Redis that takes so many commits; all of one conversation at a time."""
    store = Ending(stand.settings.redis, stand.settings.run, prefix=stand.settings.topic_prefix)
    store.left = left
    stand.stores.append(store)
    try:
        await rebuilding.run(stand.settings, store)
    except StoreUnavailable:
        return True
    return False


async def restored(stand: Stand) -> bool:
    """Whether an agent finds that all is there, or puts it there, even where no mark makes it wait."""
    await stand.store().mark(rebuilding=False)
    return await put_back(stand)


async def put_back(stand: Stand) -> bool:
    """Whether an agent finds that all is there, or puts it there."""
    store = stand.store()
    restorer = Restorer(stand.settings, store, CountingReader(), MemorySender(), stand.processing(store))
    [(_, stuck)] = [one async for one in restorer.restore([0], lambda _: True)]
    return stuck is None


async def test_what_an_ended_rebuild_left_an_agent_does_not_pass_over(
    line: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even conversations that have long been silent, whatever their names."""
    monkeypatch.setattr(putting, "FLUSH_COMMITS", 1)
    monkeypatch.setattr(restore, "STRETCH", 3)
    monkeypatch.setattr(restore, "LONGEST_STRETCH", 3)
    silent = [turn("1", room=room) for room in ("z", "a", "y")]
    busy = [turn(str(n), "-1", room="m", seconds=n) for n in range(20)]
    before = await line.live([*silent, *busy], at_once=1)
    for left in range(4):
        await line.reset()
        assert await ended(line, left)
        assert await restored(line)
        assert await line.dump() == before


async def test_where_the_journal_has_gaps_an_ended_rebuild_leaves_agents_waiting(
    line: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "STEP", 4)
    given = [one for one in COURSE if one.conversation == "a"]
    await line.produce(given)
    line.sender.loses = True
    await line.apply(line.items[:3])
    line.sender.loses = False
    await line.apply(line.items[3:])
    await line.finished()
    await line.reset()
    assert (await line.rebuild()).rebuilt == 1
    whole = await line.dump()
    for left in itertools.count():
        await line.reset()
        if not await ended(line, left):
            break
        assert not await restored(line)
        assert (await line.rebuild()).rebuilt == 1
        assert await line.dump() == whole
    assert left > 4


async def test_agents_wait_from_a_rebuilds_beginning_to_its_end(line: Stand) -> None:
    """What it has not come to yet, no journal may tell of any more."""
    await line.live(COURSE, at_once=1)
    await line.reset()
    assert await ended(line, 1)
    with pytest.raises(StoreUnavailable, match="run `volteface rebuild` again"):
        await put_back(line)
    before = await line.dump()
    await line.rebuild(dry=True)
    assert await line.dump() == before
    await line.rebuild()
    assert await put_back(line)


async def test_the_live_runs_ledger_comes_back_trimmed(settings: Settings) -> None:
    live = msgspec.structs.replace(settings, run="live", reach_days=1)
    async with standing(live) as stand:
        days = [turn(f"d-{day}", "+1", seconds=86_400 * day, room="a") for day in range(8)]
        before = await stand.live([target(), *days], at_once=1)
        await stand.reset()
        await stand.rebuild()
        assert without_windows(await stand.dump()) == without_windows(before)
        [reach] = [kept for name, kept in before.items() if name.endswith(b":reach")]
        assert isinstance(reach, list)
        assert len(reach) == 6


def without_windows(found: dict[bytes, object]) -> dict[bytes, object]:
    """A window may show turns that a trimmed ledger knows no more; whether they stand, nothing tells."""
    return {name: content for name, content in found.items() if not name.endswith(b":window")}


async def test_a_run_that_never_was_is_said(settings: Settings) -> None:
    never = msgspec.structs.replace(settings, run="never")
    with pytest.raises(RebuildFailed, match=r"run never has no topic .*never\.journal"):
        await Stand(never).rebuild()


async def test_without_a_broker_it_is_said() -> None:
    settings = Settings(broker="kafka://127.0.0.1:1", run="r")
    with pytest.raises(RebuildFailed, match="is the broker reachable"):
        await Stand(settings).rebuild()
