import asyncio
from collections.abc import Collection

import pytest
from structlog.testing import capture_logs

from stream.store.port import StoreUnavailable
from stream.wholeness import Wholeness
from tests.stream.fakes import until

P0, P1 = ("turns", 0), ("turns", 1)
OUTAGE = (StoreUnavailable,)


class Restoring:
    """Counts what it is asked for, and waits and fails as told."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.away = 0
        self.open = asyncio.Event()
        self.open.set()

    async def restore(self, partitions: Collection[int]) -> None:
        self.asked.append(sorted(partitions))
        await self.open.wait()
        if self.away:
            self.away -= 1
            raise StoreUnavailable("away")


async def test_each_partition_is_looked_at_once() -> None:
    restoring = Restoring()
    wholeness = Wholeness(restoring)
    for wanted in ({P0}, {P0, P1}, {P0, P1}, set()):
        await wholeness.make(wanted)
    assert restoring.asked == [[0], [1]]


async def test_a_partition_that_was_away_and_a_doubted_store_are_looked_at_again() -> None:
    restoring = Restoring()
    wholeness = Wholeness(restoring)
    await wholeness.make({P0, P1})
    wholeness.forget({P0})
    await wholeness.make({P0, P1})
    wholeness.doubt()
    await wholeness.make({P0, P1})
    assert restoring.asked == [[0, 1], [0], [0, 1]]


@pytest.mark.parametrize("doubted", [False, True])
async def test_a_partition_that_goes_while_it_is_looked_at_is_not_whole(doubted: bool) -> None:
    restoring = Restoring()
    restoring.open.clear()
    wholeness = Wholeness(restoring)
    work = asyncio.ensure_future(wholeness.make({P0, P1}))
    await until(lambda: restoring.asked)
    if doubted:
        wholeness.doubt()
    else:
        wholeness.forget({P0})
    restoring.open.set()
    await work
    await wholeness.make({P0, P1})
    assert restoring.asked == [[0, 1], [0, 1] if doubted else [0]]


async def test_what_failed_is_done_again_by_the_first_record() -> None:
    restoring = Restoring()
    restoring.away = 1
    wholeness = Wholeness(restoring)
    with capture_logs() as logs:
        wholeness.look({P0}, OUTAGE)
        await until(lambda: logs)
    assert logs[0]["event"] == "restore.postponed"
    await wholeness.make({P0})
    assert restoring.asked == [[0], [0]]
    await wholeness.close()


async def test_two_who_look_at_once_look_one_after_the_other() -> None:
    restoring = Restoring()
    restoring.open.clear()
    wholeness = Wholeness(restoring)
    wholeness.look({P0}, OUTAGE)
    record = asyncio.ensure_future(wholeness.make({P0}))
    await until(lambda: restoring.asked)
    restoring.open.set()
    await record
    assert restoring.asked == [[0]]
    await wholeness.close()


async def test_closing_ends_a_look() -> None:
    restoring = Restoring()
    restoring.open.clear()
    wholeness = Wholeness(restoring)
    wholeness.look({P0}, OUTAGE)
    await until(lambda: restoring.asked)
    async with asyncio.timeout(1.0):
        await wholeness.close()


async def test_without_a_restorer_everything_is_whole() -> None:
    wholeness = Wholeness(None)
    wholeness.look({P0}, OUTAGE)
    await wholeness.make({P0})
    await wholeness.close()
