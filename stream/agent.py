"""The agent: from a partition's raw records to committed states, delivered events and acked offsets.

An offset is acked when its record is applied and delivered, repeated, or refused and in the dead letters;
in offset order of its partition, and never on cancellation (what Faust does with acks: reference 7).
"""

import asyncio
import datetime as dt
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import structlog

from models.reader import ReaderUnavailable
from models.tracebacks import frames
from stream.carrying import Carried, Flow, Unsteered
from stream.chain import Item
from stream.deliveries import Delivery, stale
from stream.delivery import deliver
from stream.gathering import Gathering
from stream.offsets import Offsets, Partition, Place
from stream.processor import CommitContended, Processed, Processor
from stream.restore import JournalUnavailable, Restores
from stream.sender import Sender, SenderUnavailable
from stream.store.port import Store, StoreReplaced, StoreUnavailable
from stream.vitals import Vitals
from stream.wholeness import Wholeness
from tracker.records import Reason, Refused

log = structlog.get_logger(__name__)

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0
STUCK_SECONDS = 1.0  # until it is seen that what alone is carried may go on

Outage = (ReaderUnavailable, StoreUnavailable, SenderUnavailable, JournalUnavailable, CommitContended)


class Agent:
    """Takes batches of deliveries until each is finished, however often a part is down meanwhile."""

    def __init__(
        self,
        processor: Processor,
        store: Store,
        sender: Sender,
        *,
        live: bool,
        poison_attempts: int = 5,
        batch_records: int = 500,
        restorer: Restores | None = None,
        vitals: Vitals | None = None,
        private: frozenset[str] = frozenset(),
    ) -> None:
        """Without `restorer`, nothing that the store has lost is put back; `private`: tenants."""
        self._private = private
        self.vitals = vitals or Vitals()
        self._wholeness = Wholeness(store, restorer, self.vitals)
        self._processor, self._store, self._sender = processor, store, sender
        self._live, self._poison_attempts, self._batch_records = live, poison_attempts, batch_records
        self._offsets: Offsets[Delivery] = Offsets(lambda delivery: delivery.event.ack())
        self._carried = Carried()  # with those that are worked on
        self._most = batch_records  # of one attempt; fewer after an outage
        self._pause = FIRST_PAUSE_SECONDS
        self._flow: Flow = Unsteered()

    async def run(self, batches: AsyncIterator[Sequence[Any]]) -> None:
        """Take batches of Faust events until cancelled; what a bound leaves over goes first in the next."""
        gathering = Gathering(batches, self._batch_records)
        keeping = asyncio.ensure_future(self._wholeness.keep())
        try:
            while (arrived := await self._arrived(gathering)) is not None:
                await self.take(arrived)
        finally:
            keeping.cancel()
            await gathering.close()

    async def _arrived(self, gathering: Gathering[Any]) -> Sequence[Any] | None:
        """What came, without waiting for it while something else can be done. None at the end."""
        goes_on = self._carried.has(self._wholeness.stuck)
        if self._carried.room:
            return await gathering.take(wait=not goes_on, seconds=STUCK_SECONDS if self._carried else None)
        if not goes_on:
            await asyncio.sleep(STUCK_SECONDS)
        return ()

    def steered(self, flow: Flow) -> None:
        """From now on, this holds partitions back while they have much in hand."""
        self._flow = flow

    def assigned(self, partitions: set[Partition]) -> None:
        """Partitions came to this agent: what the store lacks of them is put back at once."""
        self.vitals.joined = True
        self._carried.assigned(partitions)
        self._wholeness.assigned(partitions)

    async def take(self, events: Sequence[Any]) -> None:
        """One batch: what was carried, then these events."""
        now = dt.datetime.now(dt.UTC)
        arrived = [Delivery(event, now) for event in events if not stale(event)]
        for delivery in arrived:
            self._offsets.begin(delivery.partition, delivery.offset, delivery)
        self._carried.add(arrived)
        batch = self._carried.batch(self._most, self._wholeness.stuck)
        left = frozenset(await self._attempt(batch))
        self._carried.drop([delivery for delivery in batch if delivery not in left])
        self._carried.steer(self._flow, self._wholeness.stuck)
        if not self._carried.has(self._wholeness.stuck):
            self.vitals.rest()

    def place(self, partition: Partition) -> tuple[Place, bool]:
        """How far a partition is, and whether its oldest unfinished record is in hand."""
        place = self._offsets.place(partition)
        return place, self._carried.holds(partition, place.head)

    def forget(self, partitions: set[tuple[str, int]]) -> None:
        """Partitions went to another agent: drop what is carried of them."""
        self._offsets.forget(partitions)
        self._wholeness.revoked(partitions)
        self._carried.forget(partitions)

    def _holds(self, delivery: Delivery) -> bool:
        """Whether a delivery is still ours: its partition may have gone while its batch was worked on."""
        return self._offsets.holds(delivery.partition, delivery.offset, delivery)

    async def _attempt(self, batch: list[Delivery]) -> list[Delivery]:
        """Process and deliver a batch once; returns what is to be done again."""
        batch = [delivery for delivery in batch if self._holds(delivery)]
        if not batch:
            return []
        try:
            left, outage = await self._take_whole(batch)
        except StoreReplaced as replaced:
            await self._replaced(replaced)
            return batch
        except Outage as away:
            await self._wait(away)
            return batch
        except Exception as error:  # a defect of ours must not lose the turn, nor hold all others up
            return await self._isolate(batch, error)
        if outage is None:
            self._most = min(self._most * 2, self._batch_records)
        else:
            # A reader that is too slow for so many would never answer for all of them.
            self._most = max(1, min(self._most, len(batch)) // 2)
            await self._wait(outage)
        return left

    async def _take_whole(self, batch: list[Delivery]) -> tuple[list[Delivery], ReaderUnavailable | None]:
        """Process what is of partitions that are whole; no record of theirs is taken before, whatever fails.

        No other server is accepted meanwhile: what was read of the old one is committed to the old one alone.
        """
        async with self._wholeness.steady:
            try:
                await self._wholeness.restore({delivery.partition for delivery in batch})
            except Outage:
                raise
            except Exception as error:
                log.error("restore.failed", error=type(error).__name__, frames=frames(error))
                raise JournalUnavailable(f"restoring failed: {type(error).__name__}") from error
            whole = [delivery for delivery in batch if delivery.partition not in self._wholeness.stuck]
            undone, outage = await self._process(whole)
            done = frozenset(whole).difference(undone)
            return [delivery for delivery in batch if delivery not in done], outage

    async def _replaced(self, replaced: StoreReplaced) -> None:
        await self._wait(replaced)
        await self._wholeness.accept()

    async def _process(self, batch: list[Delivery]) -> tuple[list[Delivery], ReaderUnavailable | None]:
        """What is left of a batch, and the outage that left it, if one did."""
        items: list[Item] = []
        refusals: list[tuple[Delivery, Refused]] = []
        for index, delivery in enumerate(batch):
            try:
                items.append(delivery.item(index, self._live, self._private))
            except Refused as refused:
                refusals.append((delivery, refused))
        result = await self._processor.process(items) if items else Processed()
        refusals += [(batch[refusal.index], refusal.refused) for refusal in result.refusals]
        await self._deliver(result, refusals)
        unfinished = set(result.unfinished)
        self._finish([delivery for index, delivery in enumerate(batch) if index not in unfinished])
        return [batch[index] for index in result.unfinished], result.outage

    async def _deliver(self, result: Processed, refusals: list[tuple[Delivery, Refused]]) -> None:
        """Send what stands in the outboxes and the dead letters, and wait for delivery."""
        await deliver(result.outboxes, self._store, self._sender)
        if refusals:
            for _, refused in refusals:
                log.warning("record.refused", reason=refused.reason.value, field=refused.field)
            await self._sender.send_with_headers(
                delivery.dead_letter(refused, self._private) for delivery, refused in refusals
            )
            self.vitals.refuse(refused.reason.value for _, refused in refusals)

    def _finish(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            self._offsets.finish(delivery.partition, delivery.offset)
        self.vitals.finish(len(deliveries))
        if deliveries:
            self._pause = FIRST_PAUSE_SECONDS

    async def _wait(self, outage: Exception) -> None:
        """A part does not answer: pause, longer each time; refuse nothing."""
        pause = max(self._pause, getattr(outage, "retry_after", 0.0))
        part = type(outage).__name__
        log.warning("agent.paused", part=part, error=str(outage), seconds=round(pause, 1))
        self.vitals.pause(part, time.monotonic())
        self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)
        await asyncio.sleep(min(pause, LONGEST_PAUSE_SECONDS))

    async def _isolate(self, batch: list[Delivery], error: Exception) -> list[Delivery]:
        """Find the record that fails: halve the batch; one that fails alone again and again is refused."""
        log.error("batch.failed", records=len(batch), error=type(error).__name__, frames=frames(error))
        self.vitals.tried()
        if len(batch) == 1:
            return await self._poison(batch[0], error)
        middle = len(batch) // 2
        left = await self._attempt(batch[:middle])
        if left:  # what comes after must not overtake it
            return [*left, *batch[middle:]]
        return await self._attempt(batch[middle:])

    async def _poison(self, delivery: Delivery, error: Exception) -> list[Delivery]:
        for attempt in range(1, self._poison_attempts):
            await asyncio.sleep(FIRST_PAUSE_SECONDS * attempt)
            try:
                left, _ = await self._take_whole([delivery])
                return left
            except Outage:
                return [delivery]
            except Exception as again:
                error = again
                self.vitals.tried()
        remedy = "a defect of ours: report it with the agent's log, then retry the dead letter"
        refused = Refused(
            Reason.FAILED, "value", f"{type(error).__name__} {self._poison_attempts} times", remedy
        )
        try:
            await self._deliver(Processed(), [(delivery, refused)])
        except Outage as outage:
            await self._wait(outage)
            return [delivery]
        self._finish([delivery])
        return []
