"""The mean of adapters that grew from one another: one reader of the same size, steadier than each.

Wortsman et al., 2022, "Model soups: averaging weights of multiple fine-tuned models improves accuracy without
increasing inference time": it holds for runs that share their beginning.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.encoder.adapter import CONFIG, WEIGHTS, AdapterConfig, read_config
from models.language.settings import InvalidSetting


def average(adapters: Sequence[Path], out: Path) -> None:
    """Write the mean of at least two adapters, without thresholds. Raises InvalidSetting, FileExistsError."""
    configs = [read_config(adapter) for adapter in adapters]
    _check(adapters, configs)
    if (out / WEIGHTS).exists():
        raise FileExistsError(f"{out} holds an adapter; name a new folder")
    mean = _mean([_tensors(adapter) for adapter in adapters], adapters)
    out.mkdir(parents=True, exist_ok=True)
    # The weights last: a folder that has them is whole.
    (out / CONFIG).write_bytes(msgspec.json.format(msgspec.json.encode(configs[0]), indent=2))
    partial = out / f"{WEIGHTS}.partial"
    save_file(mean, partial)
    partial.replace(out / WEIGHTS)


def _check(adapters: Sequence[Path], configs: Sequence[AdapterConfig]) -> None:
    if len(adapters) < 2:
        raise InvalidSetting("adapters", f"{len(adapters)} of them", "name at least two")
    for adapter, config in zip(adapters, configs, strict=True):
        if config.lora is not None:
            raise InvalidSetting(
                "adapters", f"{adapter} is LoRA's, whose parts have no mean", "average others"
            )
        if config != configs[0]:
            got = (
                f"{adapter} stands on {config.base_revision}, its budget is {config.tokens} tokens, "
                f"its sides {config.sides}"
            )
            raise InvalidSetting("adapters", got, f"average adapters like {adapters[0]}")


def _tensors(adapter: Path) -> dict[str, Tensor]:
    try:
        return load_file(adapter / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise InvalidSetting("adapters", f"{adapter}: {error}", "train it again, or name another") from None


def _mean(parts: Sequence[dict[str, Tensor]], adapters: Sequence[Path]) -> dict[str, Tensor]:
    names = parts[0].keys()
    for adapter, part in zip(adapters, parts, strict=True):
        if part.keys() != names:
            raise InvalidSetting(
                "adapters", f"{adapter} has other tensors than {adapters[0]}", "average its like"
            )
    return {
        name: torch.stack([part[name].float() for part in parts]).mean(0).to(parts[0][name].dtype)
        for name in names
    }
