"""From a base and an adapter to a network that can read, with all that an engine needs beside it."""

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModel, AutoTokenizer, PreTrainedModel

from models.encoder import adapter as adapters
from models.encoder import calibration, quantized
from models.encoder.calibration import Calibration
from models.encoder.features import TOKENS, Featurizer
from models.encoder.network import StanceNetwork
from models.hardware import bf16_on_cpu
from models.language.backbone import Placement, fingerprint
from models.language.quiet import quietly
from models.language.settings import InvalidSetting
from models.language.weights import Found


@dataclass(frozen=True)
class Loaded:
    """A network where it runs, its features, its temperatures, and what it is called."""

    network: StanceNetwork
    featurizer: Featurizer
    calibration: Calibration
    name: str
    revision: str
    untrained: bool
    device: torch.device
    autocast: torch.dtype | None = None  # of weights that are in float32, as training has them


def load(found: Found, adapter: Path | None = None, placement: Placement | None = None) -> Loaded:
    """The encoder in `found` with an adapter, or with untrained heads. Raises InvalidSetting."""
    placement = placement or Placement()
    placement.apply_threads()
    device, dtype = serving(placement)
    network, revision = adapters.fresh(encoder(found.folder)), found.revision
    tokens, sides, temperatures = TOKENS, True, Calibration()
    if adapter is not None:
        config = adapters.read_config(adapter)
        adapters.apply(network, config, adapter, found)
        tokens, sides, temperatures = config.tokens, config.sides, calibration.load(adapter)
        revision = f"{found.revision}+{fingerprint(adapter)}"
    featurizer = featurizer_of(found, tokens, sides=sides)
    _put(network, device, dtype)
    return Loaded(network, featurizer, temperatures, found.name, revision, adapter is None, device)


def encoder(folder: Path) -> PreTrainedModel:
    """Any Hugging Face encoder in float32, without a pooler: the heads bring their own."""
    with quietly():
        try:
            return AutoModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False)
        except TypeError:  # an architecture that never has one
            return AutoModel.from_pretrained(folder, dtype=torch.float32)


def featurizer_of(found: Found, tokens: int, *, sides: bool = True) -> Featurizer:
    """The features of a base's tokenizer. Raises InvalidSetting where it cannot part texts."""
    with quietly():
        tokenizer = AutoTokenizer.from_pretrained(found.folder)
    try:
        return Featurizer(tokenizer, tokens, sides=sides)
    except ValueError as error:
        raise InvalidSetting("path", f"{found.folder}: {error}", "name an encoder's folder") from None


def serving(placement: Placement) -> tuple[torch.device, torch.dtype]:
    """The device, and the number format that an encoder reads in. Raises InvalidSetting."""
    device, dtype = placement.resolved()
    if dtype is torch.int8:
        quantized.check(device)
        return device, dtype
    return device, precision(placement)[1] or torch.float32


def precision(placement: Placement) -> tuple[torch.device, torch.dtype | None]:
    """The device, and the precision that autocast gives the encoder in training; None: float32.

    Raises InvalidSetting for int8, and for bfloat16 on a CPU that would only emulate it.
    """
    device, dtype = placement.resolved()
    if dtype is torch.float32:
        return device, None
    if dtype is torch.int8:
        raise InvalidSetting("dtype", "int8 is for reading, nothing is trained in it", "use auto or float32")
    if device.type == "cpu" and not bf16_on_cpu():
        raise InvalidSetting("dtype", "bfloat16, but this CPU has no avx512_bf16", "use auto or float32")
    return device, dtype


def _put(network: StanceNetwork, device: torch.device, dtype: torch.dtype) -> None:
    """Onto the device, the encoder in that number format: cast once, where autocast would at every call."""
    if dtype is torch.int8:
        quantized.quantize(network.encoder)
    elif dtype is not torch.float32:
        _cast(network.encoder, dtype)
    network.to(device)


def _cast(encoder: PreTrainedModel, dtype: torch.dtype) -> None:
    """All but the word embeddings: they stay a view of their file, of which memory holds the words in use."""
    table = encoder.get_input_embeddings()
    for module in encoder.modules():
        if module is not table:
            for weights in module.parameters(recurse=False):
                weights.data = weights.data.to(dtype)
    table.register_forward_hook(lambda _, __, rows: rows.to(dtype))
