"""What the instruction's cache saves: the same requests with it, and with the instruction read every time."""

import asyncio
from collections.abc import Iterator

from models.language.prompts import INSTRUCTION
from tests.benchmarks import engines, histories
from tests.benchmarks.measuring import Figure, Goal, Result, Scale, interleaved, milliseconds, ratio

DEPTH = 20
BATCH = 8


def run(scale: Scale) -> Result:
    """One turn alone, and a batch of turns."""
    rounds = scale.of(10, 3)
    figures = [*_compared("one turn", 1, rounds), *_compared(f"batch of {BATCH}", BATCH, rounds)]
    instruction = len(engines.backbone().frame(INSTRUCTION)[0])
    return Result(
        name="prefix_cache",
        conditions={**engines.conditions(), "rounds": rounds, "instruction_tokens": instruction},
        figures=tuple(figures),
    )


def _compared(what: str, size: int, rounds: int) -> Iterator[Figure]:
    requests = asyncio.run(histories.requests(DEPTH, rounds * size))
    cached, uncached = engines.engine(), engines.engine(cached=False)
    seconds = interleaved(
        {
            "cached": lambda number: cached.observe(requests[number * size :][:size]),
            "uncached": lambda number: uncached.observe(requests[number * size :][:size]),
        },
        rounds,
    )
    yield milliseconds(f"{what}: cached, a turn", seconds["cached"], size)
    yield milliseconds(f"{what}: read every time, a turn", seconds["uncached"], size)
    name = f"{what}: cached to read every time"
    yield ratio(name, seconds["cached"], seconds["uncached"], Goal(most=1.0))
