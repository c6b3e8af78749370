"""Puts back what Redis lost: entries at the end of the journal whose version the store lacks.

A failover or a crash of Redis may lose writes of which the topics have already told. Their records are then
taken from the turns topic once more, in the same order, with the readings that the journal keeps in place of
the model: the same code makes the same states, ledger, window and events of them, under the same ids.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import structlog
from aiokafka.errors import KafkaError

from models.reader import Reader
from stream import journal, topics
from stream.chain import Item
from stream.delivery import Sends, deliver
from stream.journal import Journal
from stream.processor import Processor
from stream.recall import RecallingReader
from stream.receipts import appended
from stream.settings import Settings
from stream.store.port import ConversationKey, Need, Store, StoreUnavailable
from tracker.keys import LIVE
from tracker.ledger import JournalEntry
from tracker.observations import Mark
from tracker.parsing import parse_keyed
from tracker.records import Refused, record_id

log = structlog.get_logger(__name__)

STRETCH = 500  # entries that are looked at first; twice as many each further time
LONGEST_STRETCH = 8000
MOST_LOST = 20_000  # entries; more are no failover's but a store that was emptied
BATCH = 500  # records that are put back at once


class JournalUnavailable(Exception):
    """The journal cannot be read now: pause and try again, take no record before."""


class Unrestorable(StoreUnavailable):
    """Redis lacks more than can be put back from the end of the journal: it must be rebuilt."""

    def __init__(self, lost: int, why: str) -> None:
        super().__init__(
            f"Redis lacks {lost} applied records, {why}: end the agents, run `volteface rebuild`"
        )


class Restores(Protocol):
    """What puts back what a store lost."""

    async def restore(self, partitions: Collection[int]) -> None:
        """Put back what the store lacks of these partitions. Raises what makes an agent pause."""
        ...


class Place(NamedTuple):
    """Where a record stands in the log."""

    topic: str
    partition: int
    offset: int


class Restorer:
    """Looks at the end of journal partitions, and puts back what is missing in the store."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        reader: Reader,
        sender: Sends,
        processing: Callable[[Reader], Processor],
    ) -> None:
        """`processing` makes the processor that a reader is given to."""
        self._settings, self._store, self._reader = settings, store, reader
        self._sender, self._processing = sender, processing

    async def restore(self, partitions: Collection[int]) -> None:
        """Put back what the store lacks of these partitions.

        Raises JournalUnavailable, Unrestorable, and what processing and sending raise.
        """
        try:
            async with journal.reading(self._settings) as read:
                for partition in sorted(partitions):
                    await self._restore(read, partition)
        except (KafkaError, TimeoutError, OSError) as error:
            raise JournalUnavailable(f"the journal cannot be read: {error!r}") from error

    async def _restore(self, read: Journal, partition: int) -> None:
        lost = await self._lost(read, partition)
        if not lost:
            return
        records = await self._records(read, partition, lost)
        recalling = RecallingReader(self._reader, lost)
        for start in range(0, len(records), BATCH):
            await self._put_back(self._processing(recalling), records[start : start + BATCH])
        log.warning("restore.done", partition=partition, records=len(records))

    async def _lost(self, read: Journal, partition: int) -> list[JournalEntry]:
        """Backwards in stretches, until one lacks nothing: what a failover loses is the end."""
        first, upper = await read.bounds(partition)
        found: dict[int, JournalEntry] = {}
        length = STRETCH
        while upper > first:
            lower = max(first, upper - length)
            lacking = await self._lacking(await read.entries(partition, lower, upper))
            found |= lacking
            if not lacking:
                break
            if len(found) > MOST_LOST:
                raise Unrestorable(len(found), "and perhaps more")
            upper, length = lower, min(2 * length, LONGEST_STRETCH)
        return [entry for _, entry in sorted(found.items())]

    async def _lacking(self, entries: Mapping[int, JournalEntry]) -> dict[int, JournalEntry]:
        """Those of the entries that the store never took, or lost."""
        records: dict[ConversationKey, set[str]] = {}
        for entry in entries.values():
            records.setdefault(_owner(entry), set()).add(entry.entry.id)
        needs = [Need(key, records=frozenset(ids)) for key, ids in records.items()]
        known: dict[ConversationKey, tuple[int, frozenset[str]]] = {}
        for start in range(0, len(needs), BATCH):
            part = needs[start : start + BATCH]
            for need, loaded in zip(part, await self._store.load(part), strict=True):
                known[need.key] = loaded.conversation.header.version, loaded.applied
        return {offset: entry for offset, entry in entries.items() if _lacks(entry, *known[_owner(entry)])}

    async def _records(self, read: Journal, partition: int, lost: Sequence[JournalEntry]) -> list[Item]:
        """The records of lost entries as they stand in the turns topic. Raises Unrestorable."""
        turns = topics.topic(self._settings, "turns")
        wanted = {place.offset: entry for entry in lost if (place := _place(entry)) is not None
                  and (place.topic, place.partition) == (turns, partition)}  # fmt: skip
        messages = await read.records(partition, sorted(wanted))
        found = [self._item(message, wanted[offset]) for offset, message in sorted(messages.items())]
        items = [item for item in found if item is not None]
        here = {(item.record.tenant, item.record.conversation, record_id(item.record)) for item in items}
        missing = len({(entry.tenant, entry.conversation, entry.entry.id) for entry in lost} - here)
        if missing:
            raise Unrestorable(missing, "which the turns topic no longer holds")
        return items

    def _item(self, message: Any, entry: JournalEntry) -> Item | None:
        try:
            record = parse_keyed(message.key, message.value)
        except Refused:
            return None
        if record_id(record) != entry.entry.id:
            return None  # the topic was made anew: another record stands there
        receipt = appended(message) or (entry.entry.sent_at if Mark.CLAMPED in entry.entry.marks else None)
        live = self._settings.run == LIVE
        return Item(message.offset, record, entry.source, receipt if live else None)

    async def _put_back(self, processor: Processor, items: list[Item]) -> None:
        while items:
            result = await processor.process(items)
            await deliver(result.outboxes, self._store, self._sender)
            for refusal in result.refusals:  # it was applied once, so this is a defect of ours
                log.error("restore.refused", reason=refusal.refused.reason.value)
            if result.outage is not None:
                raise result.outage
            unfinished = set(result.unfinished)
            items = [item for item in items if item.index in unfinished]


def _owner(entry: JournalEntry) -> ConversationKey:
    return ConversationKey(entry.tenant, entry.conversation)


def _lacks(entry: JournalEntry, version: int, applied: frozenset[str]) -> bool:
    """A trimmed ledger does not know an old record any more, but its version is passed."""
    return entry.header.version > version and entry.entry.id not in applied


def _place(entry: JournalEntry) -> Place | None:
    if not entry.source:
        return None
    topic, partition, offset = entry.source.rsplit("/", 2)
    return Place(topic, int(partition), int(offset))
