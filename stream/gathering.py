"""Gathering: what arrives while a batch is worked on makes the next batch.

A batch has a fixed cost of some round trips, and a stream that is only read between batches gives a handful
of records at a time. Read on meanwhile, batches grow by themselves as far as the load asks for it, and no
record of an idle stream waits any longer for that.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

T = TypeVar("T")


class Gathering(Generic[T]):
    """Reads an iterator of batches on, until `most` events wait to be taken. Make it in a running loop."""

    def __init__(self, batches: AsyncIterator[Sequence[T]], most: int) -> None:
        self._batches, self._most = batches, most
        self._events: list[T] = []
        self._arrived, self._room = asyncio.Event(), asyncio.Event()
        self._ended = False
        self._task = asyncio.ensure_future(self._gather())

    async def take(self, *, wait: bool, seconds: float | None = None) -> list[T] | None:
        """What waits, at most `most`; with `wait`, at least one event, but none after `seconds`.

        None at the end. Raises what the iterator raised.
        """
        if wait and not self._events and not self._ended:
            self._arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._arrived.wait()
        if not self._events and self._ended:
            await self._task
            return None
        taken, self._events = self._events[: self._most], self._events[self._most :]
        if len(self._events) < self._most:
            self._room.set()
        return taken

    async def close(self) -> None:
        """Read no more; what was not taken is dropped."""
        self._task.cancel()
        with suppress(asyncio.CancelledError, Exception):  # nobody is left who could take the error
            await self._task

    async def _gather(self) -> None:
        try:
            async for batch in self._batches:
                self._events += batch
                self._arrived.set()
                if len(self._events) >= self._most:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self._ended = True
            self._arrived.set()
