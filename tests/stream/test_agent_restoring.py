"""The agent takes no record of a partition before the store holds all that the topics tell of it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import pytest

from models.reader import ObserveRequest
from stream import agent as module
from stream import wholeness
from stream.agent import Agent
from stream.chain import Item
from stream.processor import Processed, Processor
from stream.restore import Held, JournalUnavailable, Restored, Unrestorable
from stream.store.port import Commit, Loaded, Need, StoreReplaced
from tests.stream.fakes import CountingReader, FlakyStore, MemorySender, Partition, rule, target, turn, until
from tracker.conversation import Rules
from tracker.observations import Observation
from tracker.records import Record

TALK: list[Record] = [target(), turn("1"), turn("2", "-1")]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(module, "LONGEST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(module, "STUCK_SECONDS", 0.01)
    monkeypatch.setattr(wholeness, "STUCK_SECONDS", 0.03)
    monkeypatch.setattr(wholeness, "LOOK_SECONDS", 0.01)


class ReplaceableStore(FlakyStore):
    """Answers nobody after another server came, until that is accepted."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced = False

    async def load(self, needs: Sequence[Need]) -> list[Loaded]:
        if self.replaced:
            raise StoreReplaced("another")
        return await super().load(needs)

    async def commit(self, commits: Sequence[Commit]) -> list[bool]:
        if self.replaced:
            raise StoreReplaced("another")
        return await super().commit(commits)

    def accept(self) -> None:
        self.replaced = False


class Restoring:
    """Notes what was acked when it was asked; fails as told."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.asked: list[tuple[list[int], int]] = []
        self.fails: list[Exception] = []
        self.stuck: set[int] = set()

    async def restore(self, partitions: Sequence[int], held: Held) -> AsyncIterator[Restored]:
        self.asked.append((list(partitions), len(self._partition.acked)))
        if self.fails:
            raise self.fails.pop()
        for partition in partitions:
            yield Restored(partition, Unrestorable(1, "gone") if partition in self.stuck else None)


class Stand:
    def __init__(self) -> None:
        self.store, self.sender, self.partition = ReplaceableStore(), MemorySender(), Partition()
        self.restoring = Restoring(self.partition)
        self.agent = Agent(
            Processor(self.store, rule(), Rules()),
            self.store,
            self.sender,  # type: ignore[arg-type]
            live=False,
            restorer=self.restoring,
        )

    async def take(self, *given: Record) -> None:
        await self.agent.take(self.partition.events(given))


async def test_a_partition_is_restored_once_before_its_first_record() -> None:
    stand = Stand()
    await stand.take(*TALK)
    await stand.take(turn("3"))
    assert stand.restoring.asked == [([0], 0)]
    assert stand.partition.acked == [0, 1, 2, 3]


@pytest.mark.parametrize("failure", [JournalUnavailable("away"), KeyError("a defect")])
async def test_nothing_is_taken_while_it_cannot_be_restored(failure: Exception) -> None:
    stand = Stand()
    stand.restoring.fails = [failure] * 3
    await stand.take(*TALK)
    for _ in range(2):
        await stand.agent.take([])
        assert stand.partition.acked == []
    await stand.agent.take([])
    assert stand.partition.acked == [0, 1, 2]
    assert stand.sender.letters == []


async def test_another_server_is_taken_for_whole_only_when_it_was_restored() -> None:
    stand = Stand()
    await stand.take(*TALK)
    stand.store.replaced = True
    await stand.take(turn("3"))
    assert stand.partition.acked == [0, 1, 2]
    await stand.agent.take([])
    assert stand.restoring.asked == [([0], 0), ([0], 3)]
    assert stand.partition.acked == [0, 1, 2, 3]


async def test_a_server_is_not_accepted_while_a_batch_is_worked_on() -> None:
    """The batch knows what the old server had: on the new one it would take a place that is not its own."""
    stand = Stand()
    await stand.take(*TALK)
    reading, go_on = asyncio.Event(), asyncio.Event()

    class Slow(CountingReader):
        async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
            reading.set()
            await go_on.wait()
            return await super().observe(requests)

    stand.agent._processor._reader = Slow()
    batch = asyncio.ensure_future(stand.take(turn("3")))
    await reading.wait()
    stand.store.replaced = True
    accepting = asyncio.ensure_future(stand.agent._wholeness.accept())
    await asyncio.sleep(0)
    assert stand.store.replaced
    go_on.set()
    await batch
    await accepting
    assert stand.partition.acked == [0, 1, 2]
    await stand.agent.take([])
    assert stand.partition.acked == [0, 1, 2, 3]


async def test_a_record_that_is_tried_again_alone_waits_until_its_partition_is_whole_again() -> None:
    stand = Stand()

    class Breaking(Processor):
        broken = False

        async def process(self, items: Sequence[Item]) -> Processed:
            if not self.broken:
                self.broken = True
                stand.agent._wholeness._whole.clear()  # as another server does
                raise KeyError("a defect")
            return await super().process(items)

    stand.agent._processor = Breaking(stand.store, rule(), Rules())
    await stand.take(target())
    assert stand.restoring.asked == [([0], 0), ([0], 0)]
    assert stand.partition.acked == [0]


async def test_a_server_that_is_replaced_while_it_is_restored_is_restored_again() -> None:
    stand = Stand()
    stand.restoring.fails = [StoreReplaced("another")]
    await stand.take(*TALK)
    assert stand.partition.acked == []
    await stand.agent.take([])
    assert stand.restoring.asked == [([0], 0), ([0], 0)]
    assert stand.partition.acked == [0, 1, 2]


async def test_a_partition_that_comes_back_is_restored_again() -> None:
    stand = Stand()
    await stand.take(*TALK)
    stand.agent.forget({("volteface.turns", 0)})
    await stand.take(turn("3"))
    assert stand.restoring.asked == [([0], 0), ([0], 3)]


async def test_a_partition_that_cannot_be_restored_holds_up_no_other() -> None:
    stand, other = Stand(), Partition(1)
    stand.restoring.stuck = {0}
    await stand.agent.take([*stand.partition.events(TALK), *other.events([target("b"), turn("1", room="b")])])
    await stand.agent.take(other.events([turn("2", room="b")]))
    assert (stand.partition.acked, other.acked) == ([], [0, 1, 2])
    assert stand.agent.vitals.held is not None
    assert stand.agent.vitals.held.part == "Unrestorable"


async def test_what_is_carried_of_a_stuck_partition_goes_on_when_it_was_restored() -> None:
    stand = Stand()
    stand.restoring.stuck = {0}
    queue: asyncio.Queue[list[object]] = asyncio.Queue()
    queue.put_nowait(stand.partition.events(TALK))

    async def stream() -> AsyncIterator[list[object]]:
        while True:
            yield await queue.get()

    running = asyncio.create_task(stand.agent.run(stream()))
    await until(lambda: len(stand.restoring.asked) > 2)
    assert stand.partition.acked == []
    stand.restoring.stuck = set()
    await until(lambda: stand.partition.acked == [0, 1, 2])
    assert stand.agent.vitals.held is None
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
