"""The real model that benchmarks ask: the embedded SmolLM2, loaded once, in this process."""

from functools import cache

from models.language.backbone import Backbone, load
from models.language.generative import GenerativeEngine
from models.language.weights import SMOLLM2, resolve
from models.language.wheels import cache_folder
from models.reader import ObserveRequest
from tests.benchmarks.measuring import Conditions
from tracker.context import WindowTurn
from tracker.stances import Stance

_TURN = WindowTurn("m-1", "u-1", "hello")


@cache
def backbone() -> Backbone:
    """The model, where and as a default installation runs it."""
    return load(resolve(SMOLLM2, cache=cache_folder()))


@cache
def engine(*, cached: bool = True) -> GenerativeEngine:
    """The engine, with or without the instruction's cache; its label priors are measured already."""
    made = GenerativeEngine(backbone(), cached=cached)
    made.observe([ObserveRequest("room", _TURN, 0, "t-1", "N/A", state) for state in Stance])
    return made


def conditions() -> Conditions:
    """Which model was asked, and where it ran."""
    loaded = backbone()
    return {
        "model": loaded.name,
        "revision": loaded.revision,
        "device": str(loaded.device),
        "dtype": str(loaded.model.dtype),
    }


def shown_tokens(request: ObserveRequest) -> int:
    """Tokens of a request's own part of the prompt."""
    return len(backbone().encode(engine().body(request)))
