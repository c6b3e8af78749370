"""What a turn costs each engine, alone and in batches, in time and memory, beside the machine's own limit.

Each engine has a process of its own, so that its memory is its own. The limit is bare matrix products of the
same number of operations in the same number format on the same threads, in turns with the engine.
"""

import subprocess
import sys
from collections.abc import Iterator

import msgspec

from models.hardware import bf16_on_cpu, int8_on_cpu
from models.language.settings import default_threads
from tests.benchmarks.measuring import Figure, Goal, Result, Scale, milliseconds, ratio
from tests.benchmarks.one_engine import DEPTH, Batch, Cost

SECONDS = 1200
HALF = Goal(least=0.5)
FASTER = Goal(least=1.0)

Kind = tuple[str, str]  # engine, number format


def run(scale: Scale) -> Result:
    """Every engine, one after the other."""
    rounds, sizes = scale.of(10, 2), (1, 8) if scale.quick else (1, 8, 32)
    costs = {kind: _cost(kind, rounds, sizes) for kind in _kinds()}
    figures = [figure for kind, cost in costs.items() for figure in _figures(kind, cost)]
    return Result(
        name="engine_cost",
        conditions={"rounds": rounds, "threads": default_threads(), "depth": DEPTH},
        figures=(*figures, *_gains(costs)),
    )


def _kinds() -> Iterator[Kind]:
    yield "rule", "auto"
    yield "encoder", "float32"
    if bf16_on_cpu():
        yield "encoder", "bfloat16"
    if int8_on_cpu():
        yield "encoder", "int8"
    yield "generative", "auto"


def _cost(kind: Kind, rounds: int, sizes: tuple[int, ...]) -> Cost:
    command = [sys.executable, "-m", "tests.benchmarks.one_engine", *kind, str(rounds), *map(str, sizes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=SECONDS, check=True)
    return msgspec.json.decode(done.stdout, type=Cost)


def _figures(kind: Kind, cost: Cost) -> Iterator[Figure]:
    name = " ".join(word for word in kind if word != "auto")
    for size, batch in cost.batches.items():
        yield from _of_batch(f"{name}, {size} at once" if size > 1 else f"{name}, alone", size, batch)
    yield Figure(name=f"{name}: memory, at most", unit="MB", rounds=(cost.peak,))
    yield Figure(name=f"{name}: memory, once loaded", unit="MB", rounds=(cost.settled,))


def _of_batch(name: str, size: int, batch: Batch) -> Iterator[Figure]:
    yield milliseconds(f"{name}: a turn", batch.seconds, share=size)
    if batch.tokens:
        speeds = tuple(batch.tokens / second for second in batch.seconds)
        yield Figure(name=f"{name}: tokens", unit="1/s", rounds=speeds)
        goal = HALF if size > 1 and name.startswith("encoder") else None
        yield ratio(f"{name}: share of the limit", batch.limit, batch.seconds, goal)


def _gains(costs: dict[Kind, Cost]) -> Iterator[Figure]:
    """How many times as fast int8 is, in the largest batch."""
    int8 = costs.get(("encoder", "int8"))
    for dtype in ("float32", "bfloat16"):
        other = costs.get(("encoder", dtype))
        if int8 is not None and other is not None:
            size = max(int8.batches)
            seconds = (cost.batches[size].seconds for cost in (other, int8))
            yield ratio(f"encoder {dtype} to int8, {size} at once", *seconds, FASTER)
