"""Which partitions' conversations are known to be whole in the store, since when nobody can have lost any."""

import asyncio
from contextlib import suppress

import structlog

from stream.offsets import Partition
from stream.restore import Restores

log = structlog.get_logger(__name__)

CLOSE_SECONDS = 2.0


class Wholeness:
    """Has what the store lacks put back, once for each time that a partition or another server comes."""

    def __init__(self, restorer: Restores | None) -> None:
        """Without `restorer`, everything counts as whole."""
        self._restorer = restorer
        self._whole: set[Partition] = set()
        self._working: set[Partition] = set()
        self._turn = asyncio.Lock()
        self._looking: set[asyncio.Task[None]] = set()

    async def make(self, partitions: set[Partition]) -> None:
        """Return when they are whole. Raises what the restorer raises."""
        if self._restorer is None or partitions <= self._whole:
            return
        async with self._turn:
            self._working = partitions - self._whole
            if self._working:
                await self._restorer.restore({number for _, number in self._working})
            self._whole |= self._working  # without those that went meanwhile

    def look(self, partitions: set[Partition], outage: tuple[type[Exception], ...]) -> None:
        """The same beside all else; what an outage prevents is done before the first record is taken."""
        if self._restorer is not None:
            task = asyncio.ensure_future(self._look(partitions, outage))
            self._looking.add(task)
            task.add_done_callback(self._looking.discard)

    async def _look(self, partitions: set[Partition], outage: tuple[type[Exception], ...]) -> None:
        try:
            await self.make(partitions)
        except outage as away:
            log.warning("restore.postponed", part=type(away).__name__, error=str(away))

    def forget(self, partitions: set[Partition]) -> None:
        """They went to another agent."""
        self._whole -= partitions
        self._working -= partitions

    def doubt(self) -> None:
        """The store may have lost something of each."""
        self._whole.clear()
        self._working.clear()

    async def close(self) -> None:
        """Look no more."""
        for task in self._looking:
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.gather(*self._looking, return_exceptions=True)
