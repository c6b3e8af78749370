"""An encoder adapter: the tensors that training changed, in fp16, and what they were trained beside.

The word embeddings, four fifths of the weights, stay those of the base; with LoRA the whole encoder does.
"""

from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from models.encoder.features import TOKENS
from models.encoder.network import StanceNetwork
from models.language.settings import InvalidSetting
from models.language.weights import Found

CONFIG, WEIGHTS = "config.json", "model.safetensors"
KIND = "volteface-encoder"


class Lora(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """peft's LoRA on every linear layer of the encoder."""

    rank: int
    alpha: int


class AdapterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter is: the base it stands on, what it was shown in training."""

    base: str
    base_revision: str
    kind: str = KIND
    tokens: int = TOKENS
    sides: bool = False  # whether it learned beside the sides of earlier turns
    lora: Lora | None = None


def read_config(adapter: Path) -> AdapterConfig:
    """Raises InvalidSetting where the folder holds no encoder adapter."""
    remedy = "name a folder made by volteface train encoder"
    try:
        config = msgspec.json.decode((adapter / CONFIG).read_bytes(), type=AdapterConfig)
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidSetting("adapter", f"{adapter}: {error}", remedy) from None
    if config.kind != KIND:
        raise InvalidSetting("adapter", f"{adapter} is of kind {config.kind!r}", remedy)
    return config


def save(network: StanceNetwork, config: AdapterConfig, adapter: Path) -> None:
    """Write the trainable tensors and the config; each file appears whole."""
    adapter.mkdir(parents=True, exist_ok=True)
    tensors = {name: values.detach().half().contiguous() for name, values in trainable(network).items()}
    partial = adapter / f"{WEIGHTS}.partial"
    save_file(tensors, partial)
    partial.replace(adapter / WEIGHTS)
    partial = adapter / f"{CONFIG}.partial"
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(config), indent=2))
    partial.replace(adapter / CONFIG)


def apply(network: StanceNetwork, config: AdapterConfig, adapter: Path, found: Found) -> None:
    """Put an adapter's tensors into a network on its base. Raises InvalidSetting where it is of another."""
    if (config.base, config.base_revision) != (found.name, found.revision):
        got = f"{adapter} was trained on {config.base} {config.base_revision}, this is {found.revision}"
        raise InvalidSetting("adapter", got, "set VOLTEFACE_MODEL to the encoder it was trained on")
    if config.lora is not None:
        add_lora(network, config.lora)
    try:
        tensors = load_file(adapter / WEIGHTS)
        missing = network.load_state_dict({name: value.float() for name, value in tensors.items()}, False)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise InvalidSetting("adapter", f"{adapter}: {error}", "train it again, or name another") from None
    if missing.unexpected_keys or "pool.weight" in missing.missing_keys:
        raise InvalidSetting("adapter", f"{adapter} has other tensors", "train it again, or name another")
    if config.lora is not None:
        network.encoder = network.encoder.merge_and_unload()


def freeze(network: StanceNetwork, lora: Lora | None = None) -> None:
    """Leave to training what it may change: all but the word embeddings, or LoRA and the heads."""
    if lora is not None:
        add_lora(network, lora)
    else:
        network.encoder.get_input_embeddings().requires_grad_(False)


def add_lora(network: StanceNetwork, lora: Lora) -> None:
    """Wrap the encoder so that only LoRA is trainable in it; the heads are as they were."""
    from peft import LoraConfig, get_peft_model  # noqa: PLC0415  # takes seconds; most starts have no LoRA

    encoder: PreTrainedModel = network.encoder
    config = LoraConfig(r=lora.rank, lora_alpha=lora.alpha, target_modules="all-linear", lora_dropout=0.0)
    network.encoder = get_peft_model(encoder, config).eval()


def trainable(network: StanceNetwork) -> dict[str, Tensor]:
    """The parameters that training changes, by name."""
    return {name: values for name, values in network.named_parameters() if values.requires_grad}


def fresh(encoder: PreTrainedModel, seed: int = 0) -> StanceNetwork:
    """The encoder under heads that know nothing, the same ones for a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return StanceNetwork(encoder)
