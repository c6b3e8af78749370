"""LoRA on a backbone (StanceFlip equation 6): fresh or gone on from, and saved as peft saves it."""

import shutil
from pathlib import Path

import torch
from peft import LoraConfig, PeftConfig, PeftModel, get_peft_model
from safetensors import SafetensorError
from torch import Tensor, nn

from models.language.backbone import Backbone
from models.language.settings import InvalidSetting
from models.training.stages import LINEAR, LoraOptions

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PARTIAL = "adapter.partial"


def adapted(backbone: Backbone, options: LoraOptions, seed: int, start: Path | None) -> PeftModel:
    """The backbone's model with LoRA in every linear layer; `start` is an adapter folder to go on from.

    Raises InvalidSetting where that folder holds none of this model.
    """
    if start is not None:
        return _gone_on_from(backbone, options, start)
    config = LoraConfig(
        r=options.rank,
        lora_alpha=options.alpha,
        lora_dropout=options.dropout,
        target_modules=list(LINEAR),
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # of LoRA's first weights
        return get_peft_model(backbone.model, config)


def _gone_on_from(backbone: Backbone, options: LoraOptions, start: Path) -> PeftModel:
    remedy = "name a folder of volteface train reasoning on the same language model"
    for name in (CONFIG, WEIGHTS):  # one that is missing here peft would ask the model hub for
        if not (start / name).exists():
            raise InvalidSetting("from", f"{start} has no {name}", remedy)
    try:
        saved = _checked(PeftConfig.from_pretrained(start), options)
        saved.lora_dropout = options.dropout  # this stage's, not the one it was saved with
        return PeftModel.from_pretrained(backbone.model, start, is_trainable=True, config=saved)
    except (LookupError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        said = str(error).partition("\n")[0]
        got = f"{start} is no adapter of {backbone.name} to go on from: {said}"
        raise InvalidSetting("from", got, remedy) from error


def _checked(saved: PeftConfig, options: LoraOptions) -> LoraConfig:
    """The adapter's config, if it is this stage's: what goes on from an adapter keeps its rank and alpha."""
    if not isinstance(saved, LoraConfig):
        raise TypeError("it is none of LoRA")
    if (saved.r, saved.lora_alpha) != (options.rank, options.alpha):
        raise ValueError(
            f"its rank {saved.r} and alpha {saved.lora_alpha} are not {options.rank} and {options.alpha}"
        )
    return saved


def trainable(network: nn.Module) -> dict[str, Tensor]:
    """The parameters that training changes, by name."""
    return {name: values for name, values in network.named_parameters() if values.requires_grad}


def save(network: PeftModel, base: str, folder: Path) -> None:
    """Write the adapter for `VOLTEFACE_ADAPTER`; each file appears whole, the config last."""
    config = network.peft_config["default"]
    config.base_model_name_or_path = base  # a path of this machine tells nobody anything
    config.target_modules = sorted(config.target_modules)  # a set: in another order in every process
    partial = folder / PARTIAL
    network.save_pretrained(partial, save_embedding_layers=False)  # "auto" would ask the model hub
    for name in (WEIGHTS, CONFIG):
        (partial / name).replace(folder / name)
    shutil.rmtree(partial)
