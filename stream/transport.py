"""Faust's Kafka transport, made to lose no turn in a rebalance, to fetch soon, and to hold no process up.

Faust stops its flow while partitions move, drops what is fetched meanwhile, and then goes back to what was
committed. A partition of which nothing was committed yet stays where it stands, and what a fetch under way
takes after that is dropped too, even when the flow goes on again, since whoever asked for it was stopped:
those turns came back only with the next start, or never. Here a partition without a commit goes back to its
beginning, and what a fetch takes for nobody is put back.

Faust lets the broker hold a fetch for 1.5 s. Apache Kafka answers as soon as something comes, but Tansu only
looks again now and then: a turn that came alone stood there for up to 1.3 s, and for milliseconds this way.
Faust's consumer commits in its thread until the broker answers: with the broker gone, a process that was told
to stop would never end.

Faust takes up a partition again as soon as its own buffer has room, though it was told to pause it. And of
one that is paused it drops what is fetched and was not handed on yet: the log's next record then looks like
the one after a gap, and commits go past all that was dropped. Here what was fetched is handed on.

Where its count of what was read falls behind, as after a second way back to what is committed, Faust takes
what is in hand for a gap in the log, and commits past it: an agent that is killed then has lost it. Here
commits follow acks alone.

Where records aged out before they were read, Kafka goes on with the oldest that is left, and nobody says so.
Here the log does, when a partition comes.

Faust forgets what was acked of a partition that moves, though the group still takes commits then: all that
was done since the last one would be read again by whoever gets it. Here it is committed first.
"""

import asyncio
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import faust
import structlog
from aiokafka.errors import KafkaError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode.threads import WorkerThread

from stream.offsets import Partition

log = structlog.get_logger(__name__)

FETCH_WAIT_MS = 50
BEGINNINGS_SECONDS = 3.0  # for what is only told
NO_GENERATION = -1  # what aiokafka sets where the group does not know it any more
REVOKED_COMMIT_SECONDS = 2.0  # a rebalance must not wait for a broker that does not answer


class _Daemon(WorkerThread):  # type: ignore[misc]  # mode and Faust ship no types
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.daemon = True


class _Thread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    Worker = _Daemon
    # Read by another thread, so replaced and never changed.
    fetched: Mapping[Partition, int] = MappingProxyType({})  # the last record of each that left for Faust
    fetches = 0  # that came back
    seeks = taken_in = 0  # back to what is committed: how often until now, and until the last fetch

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # Faust has no setting for it
        return consumer

    @property
    def in_group(self) -> bool:
        """Whether the group still counts on us: one that it has evicted may hold old acks."""
        return bool(self._ensure_consumer()._coordinator.generation > NO_GENERATION)

    async def seek_to_committed(self) -> Any:
        """Go back to the committed offsets, or to the beginning where there are none."""
        return await self.call_thread(self._seek_back)

    async def _seek_back(self) -> Any:
        consumer = self._ensure_consumer()
        self.fetched, self.seeks = {}, self.seeks + 1
        committed = await consumer.seek_to_committed()
        fresh = [tp for tp, offset in committed.items() if not offset and tp in consumer.assignment()]
        if fresh:
            await consumer.seek_to_beginning(*fresh)
        await _tell_of_lost(consumer, {tp: offset for tp, offset in committed.items() if offset})
        return committed

    async def _fetch_records(self, consumer: Any, *given: Any, **named: Any) -> Any:
        began = self.seeks
        records = await super()._fetch_records(consumer, *given, **named)
        # Who asked before the way back may have been told to stop since: what it takes would be nobody's.
        if self.consumer.flow_active and began == self.seeks:
            self.taken_in = began
            last = {tp: taken[-1].offset for tp, taken in records.items() if taken}
            self.fetched, self.fetches = {**self.fetched, **last}, self.fetches + 1
            return records
        for tp, taken in records.items():
            if taken and tp in consumer.assignment():
                consumer.seek(tp, taken[0].offset)
        return {}


async def _tell_of_lost(consumer: Any, committed: Mapping[Any, int]) -> None:
    """Say which partitions begin behind what is committed; nothing where the broker does not answer."""
    try:
        async with asyncio.timeout(BEGINNINGS_SECONDS):
            starts = await consumer.beginning_offsets([*committed]) if committed else {}
    except (KafkaError, TimeoutError, OSError):
        return
    for tp, offset in committed.items():
        if starts[tp] > offset:
            log.error(
                "turns.aged_out", partition=tp.partition, records=starts[tp] - offset, from_offset=offset
            )


class _Consumer(driver.Consumer):  # type: ignore[misc]
    async def _wait_next_records(self, timeout: float) -> tuple[Any, None]:  # noqa: ASYNC109 - Faust's
        """None: whatever was fetched is delivered, though its partition was paused meanwhile.

        But nothing that was fetched before a rebalance went back to what is committed: it is read again. Nor
        does Faust go back on its own while the flow is stopped: that may end when more is on its way.
        """
        records, _ = await super()._wait_next_records(timeout)
        if not self.flow_active:
            return None, None
        return (records if self._thread.taken_in == self._thread.seeks else {}), None

    async def _add_gap(self, tp: Any, offset_from: int, offset_to: int) -> None:
        """Gaps need not be known: acks come in order, of finished heads alone (`stream/offsets.py`)."""

    def _new_offset(self, tp: Any) -> int | None:
        """The one after the last that was acked."""
        acked = self._acked[tp]
        if not acked:
            return None
        after = max(acked) + 1
        acked.clear()
        self._acked_index[tp].clear()
        return int(after)

    async def _getmany(self, active_partitions: Any, timeout: float) -> Any:  # noqa: ASYNC109 - Faust's
        return await super()._getmany(active_partitions and frozenset(active_partitions), timeout)

    def on_buffer_drop(self, tp: Any) -> None:
        super().on_buffer_drop(tp)
        self._active_partitions.difference_update(self._paused_partitions)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        if self._thread.in_group:
            # Faust's commit swallows a cancellation, so no timeout would end it.
            committing = asyncio.ensure_future(self.commit(revoked))
            done, _ = await asyncio.wait({committing}, timeout=REVOKED_COMMIT_SECONDS)
            if done:
                committing.result()
            committing.add_done_callback(_heard)
            committing.cancel()
        await super().on_partitions_revoked(revoked)

    def _new_consumer_thread(self) -> Any:
        return _Thread(self, loop=self.loop, beacon=self.beacon)


def _heard(ended: "asyncio.Future[Any]") -> None:
    """Nobody waits for it any more, and asyncio would complain of an error that nobody asks for."""
    if not ended.cancelled():
        ended.exception()


class _Transport(driver.Transport):  # type: ignore[misc]
    Consumer = _Consumer


class ConsumerFlow:
    """Holds partitions back by the app's consumer, which leaves what is fetched of them where it is."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def pause(self, partitions: Collection[Partition]) -> None:
        """They bring no more, but for what is on its way."""
        self._app.consumer.pause_partitions({TP(*partition) for partition in partitions})

    def resume(self, partitions: Collection[Partition]) -> None:
        """They bring more again."""
        self._app.consumer.resume_partitions({TP(*partition) for partition in partitions})


class App(faust.App):  # type: ignore[misc]
    """A Faust app whose fetches return soon."""

    def _new_transport(self) -> Any:
        return _Transport(self.conf.broker_consumer, self)
