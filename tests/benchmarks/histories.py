"""Conversations with a past, made by really folding every turn of it, and what the reader is asked there."""

from collections.abc import Iterable, Sequence

from models.language.rule import RuleEngine
from models.local import LocalReader
from models.reader import ObserveRequest
from stream.chain import Item
from stream.processor import Bound, Processed, Processor
from stream.store.memory import MemoryStore
from stream.store.port import Store
from tests.benchmarks import chat
from tracker.conversation import Rules
from tracker.observations import Observation
from tracker.records import Record

BATCH = 500
BOUND = Bound(waves=BATCH, seconds=60.0)  # whole batches: a history is made, not measured


class Recording(LocalReader):
    """A reader whose answers are the rule's; it keeps what it was asked last."""

    def __init__(self) -> None:
        super().__init__(RuleEngine())
        self.asked: Sequence[ObserveRequest] = ()

    async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        self.asked = requests
        return await super().observe(requests)


def beginning(conversation: str, turns: int) -> list[Record]:
    """A conversation's target and first turns."""
    return [chat.declared(conversation), *(chat.turn(conversation, at) for at in range(1, turns + 1))]


async def fold(processor: Processor, store: Store, records: Iterable[Record]) -> None:
    """Apply all records and take them for delivered. Raises RuntimeError where one is not applied."""
    left = list(records)
    while left:
        batch, left = left[:BATCH], left[BATCH:]
        done = await processor.process([Item(index, record) for index, record in enumerate(batch)])
        if done.refusals or done.outage:
            raise RuntimeError(f"a history must be applied whole: {done.refusals[:1]} {done.outage}")
        await empty(store, done)
        left = [batch[index] for index in done.unfinished] + left


async def empty(store: Store, done: Processed) -> None:
    """Say that all of a batch's outboxes were delivered."""
    await store.delivered({key: tuple(outbox) for key, outbox in done.outboxes.items() if outbox})


async def requests(depth: int, count: int) -> list[ObserveRequest]:
    """What the reader is asked at turn `depth` of a conversation and behind it, `count` turns in all."""
    store, reader = MemoryStore("bench"), Recording()
    processor = Processor(store, reader, Rules(), bound=BOUND)
    try:
        await fold(processor, store, beginning("room", depth - 1))
        found: list[ObserveRequest] = []
        for number in range(depth, depth + count):
            await fold(processor, store, [chat.turn("room", number)])
            found += reader.asked
        return found
    finally:
        await reader.close()
