"""Temperatures by head, fitted on dev and kept beside the adapter: logits are divided by them."""

from pathlib import Path
from typing import Annotated

import msgspec

from models.language.settings import InvalidSetting

FILE = "calibration.json"

Temperature = Annotated[float, msgspec.Meta(gt=0.0)]


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """1 leaves a head as it is; above 1 it is less sure."""

    expressed: Temperature = 1.0
    emotion: Temperature = 1.0
    sentiment: Temperature = 1.0
    relevance: Temperature = 1.0
    trigger: Temperature = 1.0
    pointer: Temperature = 1.0


def load(folder: Path) -> Calibration:
    """The folder's calibration, or none at all. Raises InvalidSetting where the file says something else."""
    path = folder / FILE
    if not path.exists():
        return Calibration()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except msgspec.MsgspecError as error:
        raise InvalidSetting("adapter", f"{path}: {error}", "run volteface train policy again") from None


def save(calibration: Calibration, folder: Path) -> None:
    """Write it beside the adapter."""
    (folder / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=2))
