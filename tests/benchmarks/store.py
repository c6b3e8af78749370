"""What Redis costs: load, commit and emptied outboxes of a batch of 500 records over 50 conversations."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from models.language.rule import RuleEngine
from models.local import LocalReader
from stream.chain import Item
from stream.embedded import EmbeddedRedis
from stream.processor import Processor
from stream.store.port import Commit, ConversationKey, Loaded, Need, Store
from stream.store.redis import RedisStore
from tests.benchmarks import chat, histories
from tests.benchmarks.measuring import Result, Scale, Stopwatch, milliseconds
from tracker.conversation import Rules

RECORDS, CONVERSATIONS = 500, 50
TURNS = RECORDS // CONVERSATIONS
PARTS = ("load", "commit", "delivered")


class Timed:
    """A store, and how long its calls of this batch took."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.watches = {part: Stopwatch() for part in PARTS}

    async def load(self, needs: Sequence[Need]) -> list[Loaded]:
        """What the needs ask for, in order."""
        with self.watches["load"].running():
            return await self._store.load(needs)

    async def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Per commit, whether it was taken."""
        with self.watches["commit"].running():
            return await self._store.commit(commits)

    async def delivered(self, arrivals: Mapping[ConversationKey, Collection[int]]) -> None:
        """Empty the outboxes of what was delivered."""
        with self.watches["delivered"].running():
            await self._store.delivered(arrivals)

    async def close(self) -> None:
        """Give back connections."""
        await self._store.close()


def run(scale: Scale) -> Result:
    """One batch a round, each going on where the last one ended."""
    rounds = scale.of(40, 8)
    with EmbeddedRedis() as redis:
        seconds = asyncio.run(_measured(redis.url, rounds))
    return Result(
        name="store",
        conditions={"records": RECORDS, "conversations": CONVERSATIONS, "rounds": rounds},
        figures=tuple(milliseconds(f"{part} a batch", spent) for part, spent in seconds.items()),
    )


async def _measured(url: str, rounds: int) -> dict[str, list[float]]:
    """Seconds of each part, of load and commit together, and of the whole batch with rule and fold."""
    rooms = [f"room-{number}" for number in range(CONVERSATIONS)]
    store, reader = RedisStore(url, "bench"), LocalReader(RuleEngine())
    timed, total = Timed(store), Stopwatch()
    processor = Processor(timed, reader, Rules(), bound=histories.BOUND)
    await histories.fold(processor, store, map(chat.declared, rooms))
    seconds: dict[str, list[float]] = {part: [] for part in (*PARTS, "load and commit", "all of it")}
    for number in range(-1, rounds):  # the first is to warm up
        timed.watches, total = {part: Stopwatch() for part in PARTS}, Stopwatch()
        batch = _batch(rooms, 1 + TURNS * (number + 1))
        with total.running():
            await histories.empty(timed, await processor.process(batch))
        if number >= 0:
            spent = {part: watch.seconds for part, watch in timed.watches.items()}
            spent |= {"load and commit": spent["load"] + spent["commit"], "all of it": total.seconds}
            for part, taken in spent.items():
                seconds[part].append(taken)
    await reader.close()
    await store.close()
    return seconds


def _batch(rooms: Sequence[str], start: int) -> list[Item]:
    turns = [chat.turn(room, at) for at in range(start, start + TURNS) for room in rooms]
    return [Item(index, turn) for index, turn in enumerate(turns)]
