"""Records for a running agent: evenly paced, as a platform sends them, or all at once."""

import asyncio
import datetime as dt
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stream.settings import Settings
from tests.benchmarks.crowd import Crowd
from tests.end_to_end.harness import Producer, producing

TICK_SECONDS = 0.02
CHUNK = 1000  # records that are under way at once, so that a backlog does not fill this process


class Pace:
    """How many are due at a rate a second: what was missed is made up for, so that the rate is kept."""

    def __init__(self, rate: float) -> None:
        self._rate, self._given = rate, 0

    def due(self, elapsed: float) -> int:
        """How many are to be given now, after so many seconds."""
        due = max(0, int(elapsed * self._rate) - self._given)
        self._given += due
        return due


class Feeder:
    """Lets a crowd speak, and counts what the broker has taken."""

    def __init__(self, producer: Producer, crowd: Crowd) -> None:
        self._producer, self._crowd = producer, crowd
        self.sent = 0

    async def at_once(self, count: int) -> None:
        """So many records, as fast as the broker takes them."""
        for start in range(0, count, CHUNK):
            await self._send(min(CHUNK, count - start))

    async def paced(self, rate: float, seconds: float) -> None:
        """Records at a rate a second, for so long."""
        pace, start = Pace(rate), time.monotonic()
        while (elapsed := time.monotonic() - start) < seconds:
            await self._send(pace.due(elapsed))
            await asyncio.sleep(TICK_SECONDS)

    async def _send(self, count: int) -> None:
        if count:
            await self._producer.records(self._crowd.records(count, dt.datetime.now(dt.UTC)))
            self.sent += count


@asynccontextmanager
async def feeding(settings: Settings, crowd: Crowd) -> AsyncIterator[Feeder]:
    """A feeder of the run's turns topic."""
    async with producing(settings) as producer:
        yield Feeder(producer, crowd)
