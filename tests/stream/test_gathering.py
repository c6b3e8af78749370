"""Gathering: bounded batches of what arrives meanwhile, in order, and an end that is told."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from stream.gathering import Gathering


class Source:
    """Gives batches as it is told to, and counts how many were asked for."""

    def __init__(self, batches: Sequence[Sequence[int]], error: Exception | None = None) -> None:
        self._batches, self._error = batches, error
        self.given = 0
        self.more = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[Sequence[int]]:
        for batch in self._batches:
            self.given += 1
            yield batch
        if self._error:
            raise self._error
        await self.more.wait()


async def _settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_what_came_meanwhile_is_one_batch() -> None:
    gathering = Gathering(aiter(Source([[1], [2, 3], [4]])), most=10)
    await _settled()
    assert await gathering.take(wait=True) == [1, 2, 3, 4]
    assert await gathering.take(wait=False) == []
    await gathering.close()


async def test_a_batch_is_bounded_and_the_source_is_not_read_ahead_without_bound() -> None:
    source = Source([[number] for number in range(100)])
    gathering = Gathering(aiter(source), most=3)
    await _settled()
    assert source.given == 3
    taken = [await gathering.take(wait=True) for _ in range(34)]
    assert [number for batch in taken for number in batch or ()] == list(range(100))
    assert max(len(batch or ()) for batch in taken) == 3
    await gathering.close()


async def test_a_batch_larger_than_the_bound_is_divided() -> None:
    gathering = Gathering(aiter(Source([[1, 2, 3, 4, 5]])), most=2)
    assert [await gathering.take(wait=True) for _ in range(3)] == [[1, 2], [3, 4], [5]]
    await gathering.close()


async def test_the_end_comes_after_the_last_events() -> None:
    source = Source([[1]])
    source.more.set()
    gathering = Gathering(aiter(source), most=5)
    assert await gathering.take(wait=True) == [1]
    assert await gathering.take(wait=True) is None
    await gathering.close()


async def test_the_sources_error_is_raised_after_the_last_events() -> None:
    gathering = Gathering(aiter(Source([[1]], ValueError("broken"))), most=5)
    assert await gathering.take(wait=True) == [1]
    with pytest.raises(ValueError, match="broken"):
        await gathering.take(wait=True)
    await gathering.close()


async def test_one_who_waits_is_woken_and_closing_ends_the_source() -> None:
    source = Source([])
    gathering = Gathering(aiter(source), most=5)
    waiting = asyncio.ensure_future(gathering.take(wait=True))
    await _settled()
    assert not waiting.done()
    await gathering.close()
    async with asyncio.timeout(1):
        with pytest.raises(asyncio.CancelledError):
            await waiting
