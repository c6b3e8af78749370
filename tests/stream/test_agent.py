import asyncio
import contextlib
import datetime as dt
import re
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from stream import agent as module
from stream import isolation
from stream.agent import Agent
from stream.carrying import CARRIED_RECORDS
from stream.chain import Item
from stream.offsets import Place
from stream.outbox import FLIPS, JOURNAL
from stream.processor import Bound, Processed, Processor
from stream.store.port import ConversationKey, Need
from tests.stream.fakes import (
    CountingReader,
    FlakyStore,
    MemorySender,
    Partition,
    rule,
    target,
    turn,
    until,
)
from tracker import records
from tracker.conversation import Rules
from tracker.records import CreateTurn, Record

A = ConversationKey("default", "a")
PARTITION = ("volteface.turns", 0)
TALK: list[Record] = [target(), turn("1"), turn("2", "-1"), turn("3", "+1")]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(module, "LONGEST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(isolation, "PAUSE_SECONDS", 0.001)


class Poisoned(Processor):
    """Breaks on some turns, as a defect of ours would, for so many times each."""

    def __init__(self, *given: Any, poison: dict[str, int], **rest: Any) -> None:
        super().__init__(*given, **rest)
        self.poison = poison

    async def process(self, items: Sequence[Item]) -> Processed:
        for item in items:
            name = getattr(item.record, "turn", "")
            if self.poison.get(name, 0) > 0:
                self.poison[name] -= 1
                raise KeyError(name)
        return await super().process(items)


class HeldBack:
    """Notes which partitions are held back."""

    def __init__(self) -> None:
        self.paused: set[Any] = set()

    def pause(self, partitions: Collection[Any]) -> None:
        self.paused |= set(partitions)

    def resume(self, partitions: Collection[Any]) -> None:
        self.paused -= set(partitions)


class Stand:
    """An agent on fakes."""

    def __init__(
        self, reader: Any = None, *, live: bool = False, poison: dict[str, int] | None = None, waves: int = 64
    ) -> None:
        self.store, self.sender, self.partition = FlakyStore(), MemorySender(), Partition()
        self.processor = Poisoned(
            self.store, reader or rule(), Rules(), poison=poison or {}, bound=Bound(waves=waves), live=live
        )
        self.agent = Agent(
            self.processor,
            self.store,
            self.sender,  # type: ignore[arg-type]
            live=live,
            poison_attempts=3,
        )

    async def take(self, *given: Record) -> None:
        await self.agent.take(self.partition.events(given))

    async def version(self) -> int:
        return (await self.store.load([Need(A)]))[0].conversation.header.version

    async def window(self) -> list[str]:
        [loaded] = await self.store.load([Need(A)])
        return [seen.turn for seen in loaded.conversation.window]

    @property
    def reasons(self) -> list[bytes]:
        return [headers["volteface.reason"] for _, headers in self.sender.letters]

    @contextlib.asynccontextmanager
    async def running(self, *batches: list[Any]) -> AsyncIterator[asyncio.Queue[list[Any]]]:
        """The agent's run over what is put into a queue; cancelled at the end."""
        queue: asyncio.Queue[list[Any]] = asyncio.Queue()
        for batch in batches:
            queue.put_nowait(batch)

        async def stream() -> AsyncIterator[list[Any]]:
            while True:
                yield await queue.get()

        task = asyncio.create_task(self.agent.run(stream()))
        try:
            yield queue
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def test_a_batch_is_applied_sent_and_acked_in_order() -> None:
    stand = Stand()
    await stand.take(*TALK)
    assert stand.partition.acked == [0, 1, 2, 3]
    assert [message.topic for message in stand.sender.sent[:4]] == [JOURNAL] * 4
    assert len(stand.sender.of(FLIPS)) == 2
    assert (await stand.store.load([Need(A)]))[0].outbox == {}
    assert stand.agent.vitals.finished == 4


async def test_bad_records_are_dead_letters_and_good_ones_pass() -> None:
    stand = Stand()
    good = stand.partition.events([target(), turn("1")])
    bad = [stand.partition.event(value, b"default/a") for value in (None, b"\xff", b"[]", b"{}")]
    wrong = stand.partition.event(b'{"op": "clear", "id": "x"}', b"default/b")
    await stand.agent.take([good[0], *bad, wrong, good[1]])
    assert sorted(stand.reasons) == sorted(
        [b"null", b"not_utf8", b"not_an_object", b"missing_field", b"missing_field"]
    )
    assert await stand.version() == 2
    assert sorted(stand.partition.acked) == list(range(7))


@pytest.mark.parametrize(
    ("headers", "kept"),
    [(None, {}), ({"a": b"1"}, {"a": b"1"}), ([("a", b"1"), ("a", b"2")], {"a": b"2"})],
    ids=["none", "a mapping", "pairs"],
)
async def test_headers_come_in_every_form(headers: Any, kept: dict[str, bytes]) -> None:
    stand = Stand()
    await stand.agent.take([stand.partition.event(b"x", headers=headers)])
    [(_, found)] = stand.sender.letters
    assert {name: found[name] for name in kept} == kept


def reader_away(times: int) -> CountingReader:
    return CountingReader(away=lambda seen: len(seen.observed) <= times)


OUTAGES: dict[str, Callable[[Stand], object]] = {
    "store": lambda stand: setattr(stand.store, "down", 3),
    "sender": lambda stand: setattr(stand.sender, "down", 3),
}


@pytest.mark.parametrize("part", OUTAGES)
async def test_an_outage_pauses_acks_nothing_and_refuses_nothing(part: str) -> None:
    stand = Stand()
    OUTAGES[part](stand)
    await stand.take(*TALK)
    assert stand.partition.acked == []
    for _ in range(3):
        await stand.agent.take([])
    assert stand.partition.acked == [0, 1, 2, 3]
    assert stand.sender.letters == []
    assert len(stand.sender.of(JOURNAL)) == 4
    assert await stand.version() == 4


async def test_a_pause_is_shown_from_the_first_failure_until_something_is_finished() -> None:
    stand = Stand()
    stand.store.down = 2
    await stand.take(*TALK)
    first = stand.agent.vitals.paused
    assert first is not None
    assert first.part == "StoreUnavailable"
    await stand.agent.take([])
    assert stand.agent.vitals.paused == first
    assert stand.agent.vitals.signs == 2, "each failure is a sign of life"
    assert stand.agent.vitals.pauses == {"StoreUnavailable": 2}
    await stand.agent.take([])
    assert stand.agent.vitals.paused is None


async def test_who_has_nothing_left_waits_for_no_part() -> None:
    stand = Stand()
    stand.store.down = 1
    await stand.take(*TALK)
    stand.agent.forget({PARTITION})
    await stand.agent.take([])
    assert stand.agent.vitals.paused is None


async def test_it_shows_how_far_a_partition_is_and_what_is_in_hand() -> None:
    stand = Stand(waves=2)
    await stand.take(*TALK)
    assert stand.agent.place(PARTITION) == (Place(begun=3, head=2, acked=2), True)
    stand.agent._carried.drop(stand.agent._carried.batch(10))  # as a defect would
    assert stand.agent.place(PARTITION) == (Place(begun=3, head=2, acked=2), False)


async def test_what_is_worked_on_is_in_hand_too() -> None:
    seen: list[object] = []

    class Looking(CountingReader):
        async def observe(self, requests: Any) -> Any:
            seen.append(stand.agent.place(PARTITION))
            return await super().observe(requests)

    stand = Stand(Looking())
    await stand.take(target(), turn("1"))
    assert seen == [(Place(begun=1, head=0, acked=None), True)]


async def test_refused_records_are_counted_by_reason_and_every_try_is_a_sign_of_life() -> None:
    stand = Stand(poison={"2": 1000})
    before = stand.agent.vitals.signs
    await stand.agent.take([*stand.partition.events(TALK), stand.partition.event(b"x")])
    assert stand.agent.vitals.refused == {"failed": 1, "not_json": 1}
    assert stand.agent.vitals.signs > before + 5


async def test_a_reader_that_is_away_keeps_what_was_done_before() -> None:
    stand = Stand(reader_away(3))
    await stand.take(*TALK)
    assert stand.partition.acked == [0]
    while stand.partition.acked != [0, 1, 2, 3]:
        await stand.agent.take([])
    assert stand.sender.letters == []
    assert await stand.window() == ["1", "2", "3"]


async def test_a_reader_too_slow_for_a_whole_batch_is_asked_for_less() -> None:
    """Half of what was asked for in vain, until it answers; and more again afterwards."""
    reader = CountingReader(away=lambda seen: len(seen.observed[-1]) > 2)
    stand = Stand(reader)
    await stand.take(*(target(room) for room in "abcdefgh"))
    await stand.take(*(turn("1", room=room) for room in "abcdefgh"))
    while len(stand.partition.acked) < 16:
        await stand.agent.take([])
    assert [len(call) for call in reader.observed] == [8, 4, 2, 4, 2, 4, 2, 2]
    assert stand.sender.letters == []


async def test_a_turn_that_breaks_the_engine_is_a_dead_letter_and_holds_nobody_up() -> None:
    stand = Stand(CountingReader(breaks=frozenset({"2"})))
    await stand.take(*TALK, target("b"), turn("9", room="b"))
    assert stand.reasons == [b"failed"]
    assert await stand.window() == ["1", "3"]
    assert stand.partition.acked == [0, 1, 2, 3, 4, 5]


async def test_an_engine_that_breaks_on_everything_is_an_outage() -> None:
    reader = CountingReader(breaks=frozenset({"any"}))
    stand = Stand(reader)
    await stand.take(*TALK)
    assert (stand.partition.acked, stand.sender.letters) == ([0], [])
    reader.breaks = frozenset()
    while stand.partition.acked != [0, 1, 2, 3]:
        await stand.agent.take([])
    assert stand.sender.letters == []
    assert await stand.window() == ["1", "2", "3"]


async def test_dead_letters_wait_for_the_broker_too() -> None:
    stand = Stand()
    stand.sender.down = 1
    await stand.agent.take([stand.partition.event(b"x")])
    assert (stand.partition.acked, stand.sender.letters) == ([], [])
    await stand.agent.take([])
    assert (stand.partition.acked, stand.reasons) == ([0], [b"not_json"])


async def test_what_the_bound_leaves_over_comes_before_what_arrives() -> None:
    stand = Stand(waves=2)
    await stand.take(*TALK)
    assert stand.partition.acked == [0, 1]
    await stand.take(turn("4", "-1"))
    await stand.agent.take([])
    assert stand.partition.acked == [0, 1, 2, 3, 4]
    assert await stand.window() == ["1", "2", "3", "4"]


async def test_a_record_that_always_fails_alone_becomes_a_dead_letter() -> None:
    stand = Stand(poison={"2": 1000})
    await stand.take(*TALK, turn("4", "-1"), turn("9", room="b"))
    assert stand.reasons == [b"failed"]
    assert await stand.window() == ["1", "3", "4"]
    assert stand.partition.acked == [0, 1, 2, 3, 4, 5]


async def test_a_defect_of_ours_is_logged_with_its_place_and_without_its_words() -> None:
    """A KeyError's message is the key: here a turn's name, elsewhere perhaps its text."""
    stand = Stand(poison={"a secret": 1})
    with capture_logs() as logs:
        await stand.take(turn("a secret"))
    [told] = [entry for entry in logs if entry["event"] == "batch.failed"]
    assert told["error"] == "KeyError"
    assert re.search(r"test_agent\.py:\d+ process$", told["frames"][-1])
    assert "a secret" not in str(logs)


async def test_a_record_that_fails_now_and_then_is_applied_in_its_place() -> None:
    stand = Stand(poison={"2": 4})
    await stand.take(*TALK, turn("4", "-1"))
    assert stand.reasons == []
    assert await stand.window() == ["1", "2", "3", "4"]
    assert stand.partition.acked == [0, 1, 2, 3, 4]


async def test_isolation_never_lets_a_later_record_overtake() -> None:
    """The first half is left over, by its bound: the second half must wait."""
    stand = Stand(poison={"4": 1}, waves=1)
    await stand.take(*TALK, turn("4", "-1"))
    assert await stand.version() == 1
    for _ in range(5):
        await stand.agent.take([])
    assert await stand.window() == ["1", "2", "3", "4"]
    assert stand.partition.acked == [0, 1, 2, 3, 4]


async def test_an_outage_while_poison_is_isolated_loses_nothing() -> None:
    stand = Stand(poison={"2": 1000})
    stand.sender.down = 2
    await stand.take(*TALK)
    for _ in range(8):
        await stand.agent.take([])
    assert stand.reasons == [b"failed"]
    assert await stand.window() == ["1", "3"]
    assert stand.partition.acked == [0, 1, 2, 3]


async def test_a_broker_away_when_the_poison_is_to_be_put_aside_keeps_it() -> None:
    stand = Stand(poison={"x": 1000})
    stand.sender.down = 1
    await stand.take(turn("x"))
    assert (stand.partition.acked, stand.reasons) == ([], [])
    await stand.agent.take([])
    assert (stand.partition.acked, stand.reasons) == ([0], [b"failed"])


async def test_cancellation_acks_nothing() -> None:
    entered = asyncio.Event()

    class Hanging(CountingReader):
        async def observe(self, requests: Any) -> Any:
            entered.set()
            await asyncio.Event().wait()

    stand = Stand(Hanging())
    async with stand.running(stand.partition.events(TALK)):
        await asyncio.wait_for(entered.wait(), 5)
    assert stand.partition.acked == []
    assert stand.sender.sent == []


async def test_run_takes_what_arrives_and_goes_on_with_what_is_carried() -> None:
    stand = Stand(waves=1)
    async with stand.running(stand.partition.events(TALK)) as queue:
        await until(lambda: len(stand.partition.acked) == 4)
        queue.put_nowait(stand.partition.events([turn("4")]))
        await until(lambda: stand.partition.acked == [0, 1, 2, 3, 4])


async def test_a_long_outage_does_not_fill_the_memory() -> None:
    stand = Stand()
    stand.store.down = 1_000_000
    async with stand.running() as queue:
        for _ in range(100):
            queue.put_nowait(stand.partition.events([turn("1")] * 100))
        await until(lambda: stand.agent._offsets.open >= CARRIED_RECORDS)
        downs = stand.store.down
        await until(lambda: stand.store.down < downs - 20)
        assert stand.agent._offsets.open < 2 * CARRIED_RECORDS
        assert queue.qsize() > 50


async def test_events_fetched_before_a_rebalance_are_dropped() -> None:
    stand = Stand()
    stale = stand.partition.events(TALK)
    stand.partition.generation += 1
    await stand.agent.take(stale)
    assert (stand.partition.acked, await stand.version()) == ([], 0)
    stand.partition.active = False  # while it goes on
    await stand.agent.take(stand.partition.events([turn("1")]))
    assert (stand.partition.acked, await stand.version()) == ([], 0)


async def test_a_partition_that_goes_takes_what_is_carried_with_it() -> None:
    stand = Stand(waves=1)
    await stand.take(*TALK)
    assert stand.partition.acked == [0]
    stand.agent.forget({("volteface.turns", 0)})
    await stand.agent.take([])
    assert (stand.partition.acked, await stand.version()) == ([0], 1)


async def test_a_partition_that_goes_in_the_middle_of_a_batch_is_acked_no_further() -> None:
    stand = Stand(waves=1)
    original = stand.sender.send

    async def send(messages: Any) -> None:
        stand.agent.forget({("volteface.turns", 0)})
        await original(messages)

    stand.sender.send = send  # type: ignore[method-assign]
    await stand.take(*TALK)
    await stand.agent.take([])
    assert (stand.partition.acked, await stand.version()) == ([], 1)


@pytest.mark.parametrize(("live", "kind", "clamped"), [(True, 1, True), (False, 1, False), (True, 0, False)])
async def test_the_receipt_is_the_brokers_time_or_else_the_agents(
    live: bool, kind: int, clamped: bool
) -> None:
    """By its append time the turn came from the future, by the agent's clock it did not."""
    now = dt.datetime.now(dt.UTC)
    record = CreateTurn(conversation="a", turn="1", holder="ann", text="+1", sent_at=now)
    stand = Stand(live=live)
    stamp = (now - dt.timedelta(hours=1)).timestamp()
    event = stand.partition.event(records.encode(record), b"default/a", timestamp=stamp, timestamp_type=kind)
    await stand.agent.take([event])
    [journal] = stand.sender.of(JOURNAL)
    assert (b"clamped" in (journal or b"")) is clamped


async def test_a_busy_room_before_a_slow_reader_starves_no_other_partition() -> None:
    """Faults, row 29: as many of its turns are carried as an agent takes at most, and more come."""
    asked = asyncio.Semaphore(0)

    class Slow(CountingReader):
        async def observe(self, requests: Any) -> Any:
            await asked.acquire()
            return await super().observe(requests)

    reader = Slow()
    stand, other, flow = Stand(reader, waves=2), Partition(1), HeldBack()
    stand.agent.steered(flow)
    busy: list[Record] = [turn(str(number)) for number in range(3000)]
    async with stand.running(stand.partition.events([target(), *busy])) as queue:
        stand.agent.assigned({PARTITION, ("volteface.turns", 1)})
        asked.release()
        await until(lambda: flow.paused == {PARTITION})
        queue.put_nowait(other.events([target("b"), turn("1", room="b")]))
        while not other.acked and len(stand.partition.acked) < 100:
            read = len(reader.observed)
            asked.release()
            await until(lambda read=read: len(reader.observed) > read)  # type: ignore[misc]
        await until(lambda: len(other.acked) == 2 or len(stand.partition.acked) > 100)
        assert other.acked == [0, 1]
