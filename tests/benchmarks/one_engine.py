"""One engine in a process of its own: what its turns cost there, beside bare products of as many operations.

python -m tests.benchmarks.one_engine ENGINE DTYPE ROUNDS SIZE ...    prints a Cost as JSON
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import msgspec

from models.language.registry import ReaderSettings, build_engine
from models.language.settings import default_threads
from models.reader import Engine, ObserveRequest
from models.shipped import ADAPTERS
from tests.benchmarks import histories, machine
from tests.benchmarks.measuring import interleaved

if TYPE_CHECKING:
    from torch import Tensor, nn

    from models.encoder.engine import EncoderEngine
    from models.language.generative import GenerativeEngine

DEPTH = 20
Call = Callable[[int], object]


class Batch(msgspec.Struct, kw_only=True):
    """What one size of batch cost, by round; no tokens and no limit where no model reads."""

    seconds: list[float]
    tokens: int = 0  # of what the requests show, without padding
    limit: list[float] = []  # seconds of the bare products


class Cost(msgspec.Struct, kw_only=True):
    """What one engine cost."""

    batches: dict[int, Batch]
    peak: float  # MB resident at most, loading included
    settled: float  # MB resident behind its first answers


def run(name: str, dtype: str, rounds: int, sizes: Sequence[int]) -> Cost:
    """Load the engine and have it read; the limit takes turns with it in every round."""
    asked = asyncio.run(histories.requests(DEPTH, max(sizes)))
    adapter = ADAPTERS.get(name)
    settings = ReaderSettings(
        engine=name, dtype=dtype, adapter=adapter, device="cpu", threads=default_threads()
    )
    engine = build_engine(settings)
    engine.observe(asked)
    peak, settled = machine.memory("VmHWM"), machine.memory("VmRSS")
    batches = {size: _batch(name, engine, asked[:size], rounds) for size in sizes}
    return Cost(batches=batches, peak=peak, settled=settled)


def _batch(name: str, engine: Engine, asked: Sequence[ObserveRequest], rounds: int) -> Batch:
    calls: dict[str, Call] = {"engine": lambda _: engine.observe(asked)}
    if name == "rule":
        return Batch(seconds=interleaved(calls, rounds)["engine"])
    lengths, model = _read(name, engine, asked)
    calls["limit"], share = _limit(lengths, model)
    found = interleaved(calls, rounds)
    limit = [second * share for second in found["limit"]]
    return Batch(seconds=found["engine"], tokens=sum(lengths), limit=limit)


def _read(name: str, engine: Engine, asked: Sequence[ObserveRequest]) -> "tuple[list[int], nn.Module]":
    """The requests' lengths in tokens, and the model that reads them."""
    if name == "encoder":
        loaded = cast("EncoderEngine", engine).loaded
        return [len(one.ids) for one in loaded.featurizer(asked)], loaded.network.encoder
    generative = cast("GenerativeEngine", engine)
    backbone = generative._backbone
    return [len(backbone.encode(generative.body(one))) for one in asked], backbone.model


def _limit(lengths: Sequence[int], model: "nn.Module") -> tuple[Call, float]:
    """Products of the model's shape and as many operations, and what to multiply their time with.

    Counted are the linear layers and, within a request, attention.
    """
    import torch

    weights, config, tokens = _products(model), model.config, sum(lengths)
    width, inner = int(config.hidden_size), int(config.intermediate_size)
    linear = 2 * tokens * sum(one.numel() for one in weights)
    attention = 4 * sum(length**2 for length in lengths) * width * int(config.num_hidden_layers)
    product = 2 * tokens * width * inner
    times = max(1, round((linear + attention) / product))
    dtype = weights[0].dtype
    left, right = (torch.randint(-9, 9, shape).to(dtype) for shape in ((tokens, width), (width, inner)))
    multiply = partial(torch._int_mm if dtype is torch.int8 else torch.mm, left, right)
    return lambda _: [multiply() for _ in range(times)], (linear + attention) / (times * product)


def _products(model: "nn.Module") -> "list[Tensor]":
    """The weights that every token is multiplied with; a language model's head reads few of them."""
    from torch import nn

    from models.encoder.quantized import Int8Linear

    layers = [module for name, module in model.named_modules() if name != "lm_head"]
    whole = [layer.values for layer in layers if isinstance(layer, Int8Linear)]
    return whole or [layer.weight for layer in layers if isinstance(layer, nn.Linear)]


def main(arguments: Sequence[str]) -> None:
    """Measure what the arguments say."""
    name, dtype, rounds, *sizes = arguments
    cost = run(name, dtype, int(rounds), [int(size) for size in sizes])
    print(msgspec.json.encode(cost).decode())


if __name__ == "__main__":
    main(sys.argv[1:])
