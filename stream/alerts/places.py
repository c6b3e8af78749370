"""Where reading goes on: the place that the store knows, since the states there hold what comes before it.

The group's commits only say whether there was anything before: they may be ahead of what a failover of Redis
left, and a topic that was made anew has none. To read something again changes nothing.
"""

import asyncio
import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError

from stream.alerts.port import AlertStore
from stream.alerts.vitals import Vitals
from tracker.alert_rules import Rule
from tracker.alerts import CORRECTED_WITHIN

log = structlog.get_logger(__name__)

CALL_SECONDS = 30.0


class Places(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka ships no types
    """The partitions of a consumer, each sought before it is read."""

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        store: AlertStore,
        rules: Sequence[Rule],
        vitals: Vitals,
        *,
        from_now: bool,
    ) -> None:
        """`from_now`: a partition of which the group has read nothing begins at its end."""
        self._consumer, self._store, self._vitals, self._from_now = consumer, store, vitals, from_now
        self._reach = max([CORRECTED_WITHIN, *(max(rule.reach, rule.silence) for rule in rules)])
        self._unsought: set[TopicPartition] = set()

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """They may go to another process."""
        self._unsought -= set(revoked)
        for place in revoked:
            self._vitals.lag.pop(place.partition, None)

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """They are sought before anything of theirs is taken."""
        self._vitals.joined |= not assigned  # others have them all
        self._unsought |= set(assigned)

    def again(self) -> None:
        """Seek all partitions anew: what was read last is not kept."""
        self._unsought |= set(self._consumer.assignment())

    def sought(self, partition: TopicPartition) -> bool:
        """Whether what was read of a partition comes from its place."""
        return partition not in self._unsought

    async def seek(self) -> None:
        """Go to the place of each partition that is not there. Raises StoreUnavailable and KafkaError."""
        seeking = sorted(self._unsought)
        if not seeking:
            return
        known = await self._store.positions([*map(_name, seeking)])
        async with asyncio.timeout(CALL_SECONDS):
            offsets = {place: await self._offset(place, known.get(_name(place))) for place in seeking}
        await self._store.place({_name(place): offset for place, offset in offsets.items()})
        for place, offset in offsets.items():
            with suppress(IllegalStateError):  # it went to another process
                self._consumer.seek(place, offset)
        self._unsought -= set(seeking)
        self._vitals.joined = True

    async def _offset(self, place: TopicPartition, known: int | None) -> int:
        committed: int | None = await self._consumer.committed(place)
        if committed is None:
            return await self._first(place)
        if known is not None:
            return min(known, committed)
        since = dt.datetime.now(dt.UTC) - self._reach
        found = await self._consumer.offsets_for_times({place: int(since.timestamp() * 1000)})
        log.warning("alerts.state_lost", partition=place.partition, since=since)
        return min(committed, found[place].offset) if found.get(place) else committed

    async def _first(self, place: TopicPartition) -> int:
        """Tansu lists a last batch's end as if it held one record: there "now" is behind its first one."""
        ask = self._consumer.end_offsets if self._from_now else self._consumer.beginning_offsets
        offset: int = (await ask([place]))[place]
        await self._commit({place: offset})
        return offset

    async def done(self, messages: Mapping[TopicPartition, Sequence[Any]]) -> None:
        """What these made is kept: go on behind them, here and wherever they are read next."""
        offsets = {place: batch[-1].offset + 1 for place, batch in messages.items()}
        for place, offset in offsets.items():
            end = self._consumer.highwater(place) if place in self._consumer.assignment() else None
            self._vitals.lag[place.partition] = max(0, (end or offset) - offset)
        await self._store.place({_name(place): offset for place, offset in offsets.items()})
        async with asyncio.timeout(CALL_SECONDS):
            await self._commit(offsets)

    async def _commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        # A partition that went to another process is read again there, which changes nothing.
        with suppress(CommitFailedError, IllegalStateError):
            await self._consumer.commit(dict(offsets))


def _name(place: TopicPartition) -> str:
    return f"{place.topic}/{place.partition}"
