"""What a reader is made from, and the error that says which of it is wrong."""

import os
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from models.language.wheels import cache_folder

Count = Annotated[int, msgspec.Meta(ge=1)]
MIN_BUDGET = 128
TALKING = ("generative", "remote")  # engines that also answer what is not a label: critic, Cartographer
MOST_THREADS = 4  # a small model gains nothing from more, and the stream needs cores too


def default_threads() -> int:
    """As many as the cores that this process may use (fewer than the machine's in a container), at most 4."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_THREADS)


class InvalidSetting(ValueError):
    """A setting that cannot be met: its field, what is wrong, and the remedy."""

    def __init__(self, field: str, got: str, remedy: str) -> None:
        self.field, self.got, self.remedy = field, got, remedy
        super().__init__(f"{field}: {got}; {remedy}")


class ReaderSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything has a default; engine `rule` needs none of the rest."""

    engine: str = "generative"
    path: Path | None = None  # a Hugging Face folder; None: the engine's embedded one
    adapter: Path | None = None  # a folder saved by peft, or by training of the encoder
    cache: Path = msgspec.field(default_factory=cache_folder)  # of converted weights
    device: str = "auto"  # a GPU where there is one; else "cpu", "cuda:0", ...
    dtype: Literal["auto", "float32", "bfloat16", "int8"] = "auto"  # auto: bfloat16 where it is native
    threads: Count | None = None  # None: the cores there are, at most 4
    budget_tokens: Annotated[int, msgspec.Meta(ge=MIN_BUDGET)] = (
        640  # what a prompt may show of a request (an encoder's adapter says its own)
    )
    batch_tokens: Count = 4096  # what one forward pass may hold, padding included
    critic: bool = False  # a second look at every flip's explanation, by the engine's own model
    finds: bool = False  # the Cartographer beside it, to find targets
    hub: bool = False  # may the model hub be asked where nothing local has the weights
    remote_url: str | None = None  # of engine `remote`: an OpenAI-compatible server's address, up to /v1
    remote_model: str | None = None  # as the server calls it
    remote_key: str | None = None
    remote_parallel: Count = 8  # calls under way at once
    remote_per_minute: Count | None = None  # calls, retries included; None: as many as come
    remote_seconds: Annotated[float, msgspec.Meta(gt=0)] = 60.0  # a call, with its retries and waits

    def __repr__(self) -> str:
        """Without values: one of them is a key, and a traceback may print settings."""
        return f"ReaderSettings(engine={self.engine!r})"
