"""Puts back what Redis lost: entries at the end of the journal that the store lacks.

A failover or a crash of Redis may lose writes of which the topics have already told. Their records are then
taken from the turns topic once more, in the same order, with the readings that the journal keeps in place of
the model: the same code makes the same states, ledger, window and events of them, under the same ids. Journal
entries are not sent again: they stand there, and what is sent again would hide from the next look what is
still lacking behind it.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import structlog
from aiokafka.errors import KafkaError

from models.reader import Reader
from stream import history
from stream.chain import Item
from stream.dead_letters import dead_letter
from stream.delivery import Sends, deliver
from stream.entries import Unreadable, decoded, place_of, record_of
from stream.history import History, MissingTopics
from stream.kafka import in_words
from stream.lost import Known, Lost, owner_of, waves
from stream.outbox import JOURNAL
from stream.processor import Processed, Processor
from stream.recall import RecallingReader
from stream.receipts import appended
from stream.settings import Settings
from stream.store.port import ConversationKey, Need, Outbox, Store, StoreUnavailable
from tracker.keys import LIVE
from tracker.ledger import JournalEntry
from tracker.observations import Mark
from tracker.parsing import parse_keyed

log = structlog.get_logger(__name__)

STRETCH = 1000  # entries that are looked at first; twice as many each further time
LONGEST_STRETCH = 8000
MOST_LOST = 20_000  # entries; more are no failover's but a store that was emptied
BATCH = 500  # records that are put back and conversations that are asked for at once; under STRETCH
MOST_SEARCHED = 100_000  # entries that are read for one that is missing

Held = Callable[[int], bool]  # whether a partition is still ours


class JournalUnavailable(Exception):
    """The topics cannot be read now: pause and try again, take no record before."""


class Unrestorable(Exception):
    """Redis lacks what cannot be put back from the end of a partition of the topics: it must be rebuilt."""

    def __init__(self, lost: int, why: str) -> None:
        super().__init__(
            f"Redis lacks {lost} applied records, {why}: end the agents, run `volteface rebuild`"
        )


class Restored(NamedTuple):
    """A partition that was looked at, and why it cannot be made whole, if it cannot."""

    partition: int
    stuck: Unrestorable | None = None


class Restores(Protocol):
    """What puts back what a store lost."""

    def restore(self, partitions: Sequence[int], held: Held) -> AsyncIterator[Restored]:
        """Each of the partitions once it is whole, or why it cannot be; none that is not held any more.

        Raises what makes an agent pause.
        """
        ...


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

    async def restore(self, partitions: Sequence[int], held: Held) -> AsyncIterator[Restored]:
        """Each of the partitions once it is whole, or why it cannot be, but those that are not held any more.

        Raises JournalUnavailable, StoreUnavailable where a rebuild did not end, and what processing and
        sending raise.
        """
        if await self._store.marked():
            raise StoreUnavailable("a rebuild of Redis began and did not end: run `volteface rebuild` again")
        try:
            async with history.reading(self._settings) as past:
                for partition in partitions:
                    try:
                        whole = await self._restored(past, partition, held)
                    except Unrestorable as stuck:
                        yield Restored(partition, stuck)
                    else:
                        if whole:
                            yield Restored(partition)
        except MissingTopics as missing:
            raise JournalUnavailable(str(missing)) from missing
        except (KafkaError, TimeoutError, OSError) as error:
            raise JournalUnavailable(f"the topics cannot be read: {in_words(error)}") from error

    async def _restored(self, past: History, partition: int, held: Held) -> bool:
        lost, full = await self._lost(past, partition)
        if lost and not await self._put_back(past, partition, lost, held):
            return False
        await self._empty(full)
        return True

    async def _lost(self, past: History, partition: int) -> tuple[Lost, list[ConversationKey]]:
        """What is lacking, and the conversations met on the way whose outboxes hold something.

        Backwards in stretches, until one lacks nothing: what a failover loses is the end. Where arrivals are
        missing before those found, their entries stand further back.
        """
        full: set[ConversationKey] = set()
        first, end = await past.bounds("journal", partition)
        lost, length, upper = Lost(), STRETCH, end
        while upper > first:
            lower = max(first, upper - length)
            batches = past.stretch("journal", partition, lower, upper)
            messages = [message async for batch in batches for message in batch]
            # Beyond the end that is listed some may stand; beyond another stretch they are known.
            stretch = {at: entry for at, entry in _decoded(messages) if at < upper or upper == end}
            if not lost.add(stretch, await self._known(stretch, full)) and not lost.gaps:
                break
            if len(lost) > MOST_LOST:
                raise Unrestorable(len(lost), "and perhaps more")
            if end - lower > MOST_SEARCHED:
                break
            upper, length = lower, min(2 * length, LONGEST_STRETCH)
        if lost.gaps:
            raise Unrestorable(len(lost), f"and {lost.gaps} of which the journal does not tell")
        return lost, sorted(full)

    async def _empty(self, full: list[ConversationKey]) -> None:
        """Send what stands in outboxes: that it was delivered may be what the store has lost, too."""
        for start in range(0, len(full), BATCH):
            part = full[start : start + BATCH]
            loaded = await self._store.load([Need(key) for key in part])
            outboxes = {key: one.outbox for key, one in zip(part, loaded, strict=True)}
            await deliver(outboxes, self._store, self._sender)

    async def _known(self, stretch: Mapping[int, JournalEntry], full: set[ConversationKey]) -> Known:
        """What the store has of these conversations and records; `full` takes those with outboxes."""
        records: dict[ConversationKey, set[str]] = {}
        for entry in stretch.values():
            records.setdefault(owner_of(entry), set()).add(entry.entry.id)
        needs = [Need(key, records=frozenset(ids)) for key, ids in records.items()]
        known: dict[ConversationKey, tuple[int, frozenset[str]]] = {}
        for start in range(0, len(needs), BATCH):
            part = needs[start : start + BATCH]
            for need, loaded in zip(part, await self._store.load(part), strict=True):
                known[need.key] = loaded.conversation.header.version, loaded.applied
                if loaded.outbox:
                    full.add(need.key)
        return known

    async def _put_back(self, past: History, partition: int, lost: Lost, held: Held) -> bool:
        """Whether all of it was put back; not where the partition went to another agent meanwhile."""
        for chunk in lost.chunks(BATCH):
            messages = await self._messages(past, partition, chunk)
            for wave in waves(chunk):
                if not held(partition):
                    return False
                await self._apply(wave, messages)
        log.warning("restore.done", partition=partition, records=len(lost))
        return True

    async def _messages(
        self, past: History, partition: int, entries: Sequence[JournalEntry]
    ) -> dict[str, Any]:
        """The messages of entries' records by source, all of them. Raises Unrestorable."""
        places = {entry.source: place_of(entry.source, past.turns) for entry in entries}
        offsets = sorted(place.offset for place in places.values() if place and place.partition == partition)
        read = {one.offset: one async for batch in past.records(partition, offsets) for one in batch}
        found: dict[str, Any] = {}
        for entry in entries:
            place = places[entry.source]
            message = read.get(place.offset) if place and place.partition == partition else None
            if message is not None and record_of(entry, message.key, message.value) is not None:
                found[entry.source] = message
        if len(found) < len(entries):
            raise Unrestorable(len(entries) - len(found), "which the turns topic no longer holds")
        return found

    async def _apply(self, wave: Sequence[JournalEntry], messages: Mapping[str, Any]) -> None:
        """Apply one record of each of some conversations once more."""
        processor = self._processing(RecallingReader(self._reader, wave))
        items = [self._item(index, entry, messages[entry.source]) for index, entry in enumerate(wave)]
        while items:
            result = await processor.process(items)
            await deliver(_unsaid(result.outboxes, wave), self._store, self._sender)
            await self._refuse(result, wave, messages)
            if result.outage is not None:
                raise result.outage
            unfinished = set(result.unfinished)
            items = [item for item in items if item.index in unfinished]

    def _item(self, index: int, entry: JournalEntry, message: Any) -> Item:
        receipt = appended(message) or (entry.entry.sent_at if Mark.CLAMPED in entry.entry.marks else None)
        live = self._settings.run == LIVE
        return Item(index, parse_keyed(message.key, message.value), entry.source, receipt if live else None)

    async def _refuse(
        self, result: Processed, wave: Sequence[JournalEntry], messages: Mapping[str, Any]
    ) -> None:
        """It was applied once: other settings or a defect refuse it now. It is not lost in silence."""
        letters = []
        for refusal in result.refusals:
            source, refused = wave[refusal.index].source, refusal.refused
            log.error("restore.refused", reason=refused.reason.value, field=refused.field)
            message = messages[source]
            letters.append(dead_letter(message.key, message.value, message.headers, source, refused))
        if letters:
            await self._sender.send_with_headers(letters)


def _decoded(messages: Sequence[Any]) -> Iterator[tuple[int, JournalEntry]]:
    for message in messages:
        try:
            yield message.offset, decoded(message.value)
        except Unreadable:
            log.warning("journal.unreadable", partition=message.partition, offset=message.offset)


def _unsaid(
    outboxes: Mapping[ConversationKey, Outbox], wave: Sequence[JournalEntry]
) -> dict[ConversationKey, Outbox]:
    """The outboxes without the journal entries that the journal holds."""
    said = {(owner_of(entry), entry.entry.arrival) for entry in wave}
    return {
        key: {
            arrival: tuple(one for one in sent if one.topic != JOURNAL or (key, arrival) not in said)
            for arrival, sent in outbox.items()
        }
        for key, outbox in outboxes.items()
    }
