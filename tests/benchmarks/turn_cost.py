"""What a turn costs at turn 20, 500 and 5,000 of a conversation: the model's part, and the stream's own.

The chat repeats itself every 20 turns, so the turns compared say the same words behind the same words; only
their depth differs. Turn 5 stands apart: its window is not full yet, and its texts are others.
"""

import asyncio
from collections.abc import Iterator
from functools import partial

from models.language.rule import RuleEngine
from models.local import LocalReader
from stream.chain import Item
from stream.embedded import EmbeddedRedis
from stream.processor import Processor
from stream.store.redis import RedisStore
from tests.benchmarks import chat, engines, histories
from tests.benchmarks.measuring import Figure, Goal, Result, Scale, interleaved, milliseconds, ratio
from tracker.conversation import Rules

EARLY = 5
DEPTHS = (20, 500, 5000)
FLAT = Goal(least=0.9, most=1.1)
TURNS_A_ROUND = 5  # of the stream's part: one turn is too short to be timed alone


def run(scale: Scale) -> Result:
    """The model's part, then the stream's."""
    rounds = scale.of(20, 4)
    figures = [*_of_model(rounds), *_of_stream(2 * rounds)]
    return Result(
        name="turn_cost",
        conditions={**engines.conditions(), "rounds": rounds, "depths": str((EARLY, *DEPTHS))},
        figures=tuple(figures),
    )


def _of_model(rounds: int) -> Iterator[Figure]:
    engine = engines.engine()
    asked = {depth: asyncio.run(histories.requests(depth, rounds)) for depth in (EARLY, *DEPTHS)}
    calls = {
        str(depth): lambda number, requests=requests: engine.observe([requests[number]])
        for depth, requests in asked.items()
    }
    yield from _figures("model", interleaved(calls, rounds), share=1)
    for depth, requests in asked.items():
        shown = tuple(float(engines.shown_tokens(request)) for request in requests)
        yield Figure(name=f"model: tokens shown at turn {depth}", unit="tokens", rounds=shown)


def _of_stream(rounds: int) -> Iterator[Figure]:
    with EmbeddedRedis() as redis, asyncio.Runner() as runner:
        store, reader = RedisStore(redis.url, "bench"), LocalReader(RuleEngine())
        processor = Processor(store, reader, Rules(), bound=histories.BOUND)
        deep = _Deep(runner, processor, store)
        for depth in (EARLY, *DEPTHS):
            deep.prepare(depth, rounds)
        calls = {str(depth): partial(deep.turns, depth) for depth in (EARLY, *DEPTHS)}
        yield from _figures("stream", interleaved(calls, rounds), share=TURNS_A_ROUND)
        runner.run(reader.close())
        runner.run(store.close())


class _Deep:
    """Conversations in Redis, one for each depth and round, so that a round does not deepen the next."""

    def __init__(self, runner: asyncio.Runner, processor: Processor, store: RedisStore) -> None:
        self._runner, self._processor, self._store = runner, processor, store
        self._next: dict[str, int] = {}

    def prepare(self, depth: int, rounds: int) -> None:
        """Fold what comes before `depth`; deep ones are shared: some turns more change nothing."""
        for name in {_name(depth, number) for number in range(rounds)}:
            past = histories.beginning(name, depth - 1)
            self._runner.run(histories.fold(self._processor, self._store, past))
            self._next[name] = depth

    def turns(self, depth: int, number: int) -> None:
        """Some turns from `depth` on, one a batch, as a quiet platform sends them."""
        name = _name(depth, number)
        self._runner.run(self._apply(name, self._next[name]))
        self._next[name] += TURNS_A_ROUND

    async def _apply(self, name: str, start: int) -> None:
        for at in range(start, start + TURNS_A_ROUND):
            done = await self._processor.process([Item(0, chat.turn(name, at))])
            await histories.empty(self._store, done)


def _name(depth: int, number: int) -> str:
    return f"depth-{depth}" if depth > DEPTHS[0] else f"depth-{depth}-{number}"


def _figures(part: str, seconds: dict[str, list[float]], share: int) -> Iterator[Figure]:
    for depth, spent in seconds.items():
        yield milliseconds(f"{part}: a turn at turn {depth}", spent, share)
    first, *deeper = map(str, DEPTHS)
    for depth in deeper:
        yield ratio(f"{part}: turn {depth} to turn {first}", seconds[depth], seconds[first], FLAT)
