"""Keeps an agent's partitions whole: the store lacks nothing that the topics tell of them."""

import asyncio
import time
from collections.abc import Set as AbstractSet
from contextlib import suppress

import structlog

from models.tracebacks import frames
from stream.offsets import Partition
from stream.restore import Restores, Unrestorable
from stream.store.port import Store, StoreReplaced, StoreUnavailable
from stream.vitals import Vitals

log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0  # until a failover is noticed by an agent whose partitions are idle
STUCK_SECONDS = 30.0  # until a partition that could not be restored is looked at again


class Wholeness:
    """Has restored what the store lacks, once for each time that a partition or another server comes.

    A partition that cannot be restored is stuck, until a later look finds it whole; the others are not.
    """

    def __init__(self, store: Store, restorer: Restores | None, vitals: Vitals | None = None) -> None:
        """Without `restorer`, everything counts as whole."""
        self._store, self._restorer, self._vitals = store, restorer, vitals or Vitals()
        self._owned: set[Partition] = set()
        self._whole: set[Partition] = set()
        self._stuck: dict[Partition, float] = {}  # and when they are looked at again (monotonic seconds)
        self.steady = asyncio.Lock()  # held while records are taken: then no other server is accepted
        self._turn = asyncio.Lock()  # of those who restore
        self._came = asyncio.Event()

    def assigned(self, partitions: set[Partition]) -> None:
        """They came to this agent: they are looked at soon, at the latest before their first record."""
        self._owned |= partitions
        self._came.set()

    def revoked(self, partitions: set[Partition]) -> None:
        """They went to another agent."""
        self._owned -= partitions
        self._whole -= partitions
        self._free(partitions)

    @property
    def stuck(self) -> AbstractSet[Partition]:
        """Partitions that cannot be restored: no record of theirs may be taken."""
        return self._stuck.keys()

    async def restore(self, partitions: set[Partition]) -> None:
        """Return when each is whole, stuck or gone. Raises what the restorer raises."""
        self._owned |= partitions
        if self._restorer is None or partitions <= self._whole:
            return
        async with self._turn:
            lacking = {partition[1]: partition for partition in partitions if self._lacks(partition)}
            if not lacking:
                return
            restoring = self._restorer.restore(sorted(lacking), lambda number: lacking[number] in self._owned)
            async for number, stuck in restoring:
                if lacking[number] in self._owned:
                    self._judge(lacking[number], stuck)

    def _lacks(self, partition: Partition) -> bool:
        due = self._stuck.get(partition, 0.0) <= time.monotonic()
        return partition in self._owned and partition not in self._whole and due

    def _judge(self, partition: Partition, stuck: Unrestorable | None) -> None:
        if stuck is None:
            self._whole.add(partition)
            self._free({partition})
            return
        if partition not in self._stuck:
            log.error("partition.unrestorable", partition=partition[1], error=str(stuck))
        now = time.monotonic()
        self._stuck[partition] = now + STUCK_SECONDS
        self._vitals.hold(len(self._stuck), now)

    def _free(self, partitions: set[Partition]) -> None:
        if freed := partitions & self._stuck.keys():
            for partition in freed:
                del self._stuck[partition]
            self._vitals.hold(len(self._stuck), time.monotonic())

    async def accept(self) -> None:
        """Another server answers: go on with it, and take nothing for whole.

        Batches and looks that know the old server have ended then: the store answers nobody until this.
        """
        async with self.steady, self._turn:
            self._whole.clear()
            self._free(set(self._stuck))
            self._store.accept()
        self._came.set()

    async def keep(self) -> None:
        """Look again and again, for partitions that are idle; run it beside all else until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._came.wait()
            self._came.clear()
            await self._look()

    async def _look(self) -> None:
        try:
            await self._store.ping()
            await self.restore(set(self._owned))
        except StoreReplaced as replaced:
            log.warning("store.replaced", error=str(replaced))
            await self.accept()
        except StoreUnavailable:
            return  # the agent speaks of it as soon as a record comes
        except Exception as error:  # whatever it is, no record is taken before it is gone
            log.warning("restore.postponed", error=type(error).__name__, frames=frames(error))
