"""A run's state comes back into an emptied or lagging Redis from its topics, byte for byte."""

import asyncio
import itertools
from typing import Any

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer
from structlog.testing import capture_logs

from stream import history, lag, putting, steps, topics, unfinished
from stream.chain import Item
from stream.outbox import JOURNAL, STATES
from stream.putting import Report
from stream.rebuilding import RebuildFailed
from stream.restore import Restorer
from stream.settings import Settings
from stream.store.port import ConversationKey, Message, Need
from tests.stream.fakes import CountingReader, MemorySender, target, turn
from tests.stream.rebuilding.stand import COURSE, SIZE, Stand, X, standing
from tracker import keys
from tracker.stances import Stance

pytestmark = [
    pytest.mark.filterwarnings(
        r"ignore:.*(AIOKafka\w+|StreamWriter)\.__del__:pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.long,
]


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
    with pytest.raises(RebuildFailed, match="set VOLTEFACE_BROKER"):
        await Stand(settings).rebuild()
