"""From settings to an engine: the one place that knows every engine by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from models.language.rule import RuleEngine
from models.reader import Engine

Count = Annotated[int, msgspec.Meta(ge=1)]


class ReaderSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a reader is made from. Everything has a default; `engine="rule"` needs none of the rest."""

    engine: str = "generative"
    path: Path | None = None  # a Hugging Face folder; None: the embedded SmolLM2
    adapter: Path | None = None  # a peft folder
    device: str = "auto"  # a GPU where there is one; else "cpu", "cuda:0", ...
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 on a GPU, float32 on a CPU
    threads: Count | None = None  # None: the cores there are, at most 4
    budget_tokens: Annotated[int, msgspec.Meta(ge=64)] = 640  # what a request may show, beside the instruction
    batch_tokens: Count = 8192  # what one forward pass may hold, padding included
    prior: Literal["auto", "always", "never"] = "auto"  # auto: corrected only where no adapter was trained
    hub: bool = False  # may the model hub be asked where nothing local has the weights


class UnknownEngine(ValueError):
    """Settings name an engine that does not exist."""


def build_engine(settings: ReaderSettings) -> Engine:
    """The engine that settings ask for. Raises UnknownEngine, and WeightsUnavailable from its weights."""
    build = ENGINES.get(settings.engine)
    if build is None:
        raise UnknownEngine(f"engine: no engine {settings.engine!r}; use one of {', '.join(ENGINES)}")
    return build(settings)


def _rule(settings: ReaderSettings) -> Engine:
    return RuleEngine()


def _generative(settings: ReaderSettings) -> Engine:
    # Imported late: torch and transformers take seconds, and engine `rule` must start at once.
    from models.language.generative import GenerativeEngine, Limits  # noqa: PLC0415

    backbone = _backbone(settings)
    limits = Limits(settings.budget_tokens, settings.batch_tokens)
    corrected = backbone.untrained if settings.prior == "auto" else settings.prior == "always"
    return GenerativeEngine(backbone, limits, corrected=corrected)


ENGINES: dict[str, Callable[[ReaderSettings], Engine]] = {"generative": _generative, "rule": _rule}
