"""A rebuild that fails on some conversations, or is ended half-way."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from stream import putting, rebuilding, restore, steps, topics
from stream.chain import Item
from stream.putting import Report
from stream.restore import Restorer
from stream.store.port import Commit, StoreUnavailable
from stream.store.redis import RedisStore
from tests.stream.fakes import CountingReader, MemorySender, turn
from tests.stream.rebuilding.stand import COURSE, SIZE, Stand
from tracker import keys

pytestmark = [
    pytest.mark.filterwarnings(
        r"ignore:.*(AIOKafka\w+|StreamWriter)\.__del__:pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.long,
]


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
