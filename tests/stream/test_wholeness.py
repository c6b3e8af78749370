import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from structlog.testing import capture_logs

from stream import wholeness as module
from stream.restore import Held, Restored, Unrestorable
from stream.store.memory import MemoryStore
from stream.store.port import StoreReplaced, StoreUnavailable
from stream.vitals import Vitals
from stream.wholeness import Wholeness
from tests.stream.fakes import until

P0, P1 = ("turns", 0), ("turns", 1)


class Restoring:
    """Keeps what it is asked for, and waits and fails as told."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.fails: list[Exception] = []
        self.stuck: set[int] = set()
        self.open = asyncio.Event()
        self.open.set()

    async def restore(self, partitions: Sequence[int], held: Held) -> AsyncIterator[Restored]:
        self.asked.append(list(partitions))
        for partition in partitions:
            await self.open.wait()
            if self.fails:
                raise self.fails.pop()
            if held(partition):
                yield Restored(partition, Unrestorable(1, "gone") if partition in self.stuck else None)


class Replaced(MemoryStore):
    """Another server answers, until it is accepted."""

    def __init__(self) -> None:
        super().__init__("r")
        self.replaced = self.away = False

    async def ping(self) -> None:
        if self.away:
            raise StoreUnavailable("away")
        if self.replaced:
            raise StoreReplaced("another")

    def accept(self) -> None:
        self.replaced = False


class Stand:
    def __init__(self) -> None:
        self.store, self.restoring = Replaced(), Restoring()
        self.vitals = Vitals()
        self.wholeness = Wholeness(self.store, self.restoring, self.vitals)

    @property
    def asked(self) -> list[list[int]]:
        return self.restoring.asked


@pytest.fixture
async def stand(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stand]:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.02)
    yield Stand()


@pytest.fixture
async def kept(stand: Stand) -> AsyncIterator[Stand]:
    """The same, with looks beside all else."""
    task = asyncio.ensure_future(stand.wholeness.keep())
    yield stand
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()


async def test_each_partition_is_restored_once(stand: Stand) -> None:
    for wanted in ({P0}, {P0, P1}, {P0, P1}, set()):
        await stand.wholeness.restore(wanted)
    assert stand.asked == [[0], [1]]


async def test_a_partition_that_was_away_is_restored_again(stand: Stand) -> None:
    await stand.wholeness.restore({P0, P1})
    stand.wholeness.revoked({P0})
    await stand.wholeness.restore({P0, P1})
    assert stand.asked == [[0, 1], [0]]


async def test_another_server_makes_all_of_them_doubtful(stand: Stand) -> None:
    await stand.wholeness.restore({P0, P1})
    stand.store.replaced = True
    await stand.wholeness.accept()
    assert not stand.store.replaced
    await stand.wholeness.restore({P1})
    assert stand.asked == [[0, 1], [1]]


async def test_a_partition_that_goes_while_it_is_restored_is_not_whole(stand: Stand) -> None:
    stand.restoring.open.clear()
    work = asyncio.ensure_future(stand.wholeness.restore({P0, P1}))
    await until(lambda: stand.asked)
    stand.wholeness.revoked({P0})
    stand.restoring.open.set()
    await work
    await stand.wholeness.restore({P0, P1})
    assert stand.asked == [[0, 1], [0]]


async def test_a_server_is_accepted_only_when_no_restoring_is_under_way(stand: Stand) -> None:
    """It would go on with what the other server had."""
    stand.restoring.open.clear()
    work = asyncio.ensure_future(stand.wholeness.restore({P0}))
    await until(lambda: stand.asked)
    stand.store.replaced = True
    accepting = asyncio.ensure_future(stand.wholeness.accept())
    await asyncio.sleep(0)
    assert stand.store.replaced
    stand.restoring.fails = [StoreReplaced("another")]
    stand.restoring.open.set()
    with pytest.raises(StoreReplaced):
        await work
    await accepting
    assert not stand.store.replaced


async def test_a_partition_that_comes_is_restored_before_its_first_record(kept: Stand) -> None:
    kept.wholeness.assigned({P0})
    await until(lambda: kept.asked == [[0]])


async def test_an_idle_partition_is_restored_after_a_failover(kept: Stand) -> None:
    kept.wholeness.assigned({P0})
    await until(lambda: kept.asked)
    kept.store.replaced = True
    await until(lambda: kept.asked == [[0], [0]])
    assert not kept.store.replaced


@pytest.mark.parametrize("failure", [StoreUnavailable("away"), KeyError("a defect")])
async def test_what_failed_is_tried_again(kept: Stand, failure: Exception) -> None:
    kept.restoring.fails = [failure]
    with capture_logs() as logs:
        kept.wholeness.assigned({P0})
        await until(lambda: len(kept.asked) == 2)
    said = [line["event"] for line in logs]
    assert said == ([] if isinstance(failure, StoreUnavailable) else ["restore.postponed"])


async def test_a_store_that_is_away_is_asked_again(kept: Stand) -> None:
    kept.store.away = True
    kept.wholeness.assigned({P0})
    await asyncio.sleep(0)
    kept.store.away = False
    await until(lambda: kept.asked == [[0]])


async def test_two_at_once_restore_one_after_the_other(kept: Stand) -> None:
    kept.restoring.open.clear()
    kept.wholeness.assigned({P0})
    await until(lambda: kept.asked)
    record = asyncio.ensure_future(kept.wholeness.restore({P0}))
    kept.restoring.open.set()
    await record
    assert kept.asked == [[0]]


async def test_without_a_restorer_everything_is_whole() -> None:
    await Wholeness(MemoryStore("r"), None).restore({P0})


async def test_a_stuck_partition_is_told_once_and_looked_at_again_only_after_a_while(stand: Stand) -> None:
    stand.restoring.stuck = {0}
    with capture_logs() as logs:
        for _ in range(3):
            await stand.wholeness.restore({P0, P1})
    assert stand.asked == [[0, 1]]
    assert stand.wholeness.stuck == {P0}
    assert [(line["event"], line["partition"]) for line in logs] == [("partition.unrestorable", 0)]
    assert "volteface rebuild" in logs[0]["error"]


async def test_a_stuck_partition_that_is_found_whole_is_free(
    kept: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STUCK_SECONDS", 0.01)
    kept.restoring.stuck = {0}
    with capture_logs() as logs:
        kept.wholeness.assigned({P0})
        await until(lambda: len(kept.asked) > 2)
        assert (kept.wholeness.stuck, kept.vitals.held is None) == ({P0}, False)
        signs = kept.vitals.signs
        await until(lambda: kept.vitals.signs > signs)
        kept.restoring.stuck = set()
        await until(lambda: not kept.wholeness.stuck)
    assert kept.vitals.held is None
    assert len([line for line in logs if line["event"] == "partition.unrestorable"]) == 1


async def test_a_stuck_partition_that_goes_or_another_server_frees_it(stand: Stand) -> None:
    stand.restoring.stuck = {0, 1}
    await stand.wholeness.restore({P0, P1})
    stand.wholeness.revoked({P0})
    assert stand.wholeness.stuck == {P1}
    assert stand.vitals.held is not None
    await stand.wholeness.accept()
    assert stand.wholeness.stuck == set()
    assert stand.vitals.held is None
