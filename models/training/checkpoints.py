"""Where a run stands, whole or absent at any time: weights, optimizer, step, and the best epoch so far."""

import os
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

CHECKPOINT, RUN = "checkpoint.pt", "training.json"

Options = TypeVar("Options", bound=msgspec.Struct)


class RunMismatch(ValueError):
    """A folder whose run is not the one asked for; says what differs, and what to do."""


class Run(msgspec.Struct, Generic[Options], frozen=True, kw_only=True):
    """What a folder's run is: options, the base's revision, a digest of its examples."""

    options: Options
    base_revision: str
    data: tuple[str, ...]
    examples: str


class Standing(msgspec.Struct, kw_only=True):
    """How far a run is: steps done, and the best dev figure so far."""

    step: int = 0
    best: float = -1.0
    best_epoch: int = 0


def begin(folder: Path, run: Run[Options], *, resume: bool) -> None:
    """Make the folder this run's. Raises RunMismatch where it holds another, or one not to be resumed."""
    path = folder / RUN
    if path.exists():
        if not resume:
            raise RunMismatch(f"{folder} holds a run already; resume it, or name another folder")
        differs = _differences(_stored(path, run), run)
        if differs:
            raise RunMismatch(f"{folder} holds another run: {', '.join(differs)} differ; name another folder")
        return
    folder.mkdir(parents=True, exist_ok=True)
    _replace(path, msgspec.json.format(msgspec.json.encode(run), indent=2))


def _stored(path: Path, like: Run[Options]) -> Run[Options]:
    kind: type[Options] = type(like.options)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Run[kind])  # type: ignore[valid-type]
    except msgspec.ValidationError:
        raise RunMismatch(f"{path.parent} holds a run of another kind; name another folder") from None


def _differences(stored: Run[Options], asked: Run[Options]) -> list[str]:
    found = [
        name
        for name in ("base_revision", "data", "examples")
        if getattr(stored, name) != getattr(asked, name)
    ]
    fields = asked.options.__struct_fields__
    return found + [name for name in fields if getattr(stored.options, name) != getattr(asked.options, name)]


def save(folder: Path, standing: Standing, weights: dict[str, Tensor], optimizer: Optimizer) -> None:
    """Write the checkpoint; a kill at any instant leaves this one or the one before."""
    partial = folder / f"{CHECKPOINT}.partial"
    state = {
        "standing": msgspec.to_builtins(standing),
        "weights": {name: values.detach() for name, values in weights.items()},
        "optimizer": optimizer.state_dict(),
    }
    with partial.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / CHECKPOINT)


def restore(folder: Path, network: nn.Module, optimizer: Optimizer) -> Standing:
    """Put the last checkpoint's state back; where there is none, the run begins."""
    path = folder / CHECKPOINT
    if not path.exists():
        return Standing()
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    network.load_state_dict(state["weights"], strict=False)
    optimizer.load_state_dict(state["optimizer"])
    return msgspec.convert(state["standing"], Standing)


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    partial.replace(path)
