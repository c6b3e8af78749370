"""A backbone to be trained, in the precision that a stage asks for, and the optimizer that goes with it.

8-bit and NF4 need bitsandbytes and a GPU. Where either is missing they are refused by name: a run in another
precision than the one asked for would be another run.
"""

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

from models.hardware import bf16_on_cpu
from models.language.backbone import Backbone, Placement, load
from models.language.quiet import quietly
from models.language.settings import InvalidSetting
from models.language.weights import Found
from models.training.stages import OptimizerName, Quantization

_REMEDY = "train on a GPU machine, or ask for --quantize none"


def check(quantization: Quantization, optimizer: OptimizerName = "adamw") -> None:
    """Raises InvalidSetting where this machine has not what these need."""
    asked = [name for name, plain in ((quantization, "none"), (optimizer, "adamw")) if name != plain]
    if asked and not torch.cuda.is_available():
        raise InvalidSetting("quantize", f"{asked[0]} needs a GPU, and torch sees none", _REMEDY)
    built = [name for name in asked if name != "fp16"]
    if built and find_spec("bitsandbytes") is None:
        raise InvalidSetting("quantize", f"{built[0]} needs bitsandbytes", 'pip install "volteface[train]"')


def loaded(found: Found, quantization: Quantization, placement: Placement) -> Backbone:
    """The model in `found`, frozen. Raises InvalidSetting."""
    check(quantization)
    if quantization in {"none", "fp16"}:
        dtype = placement.dtype if quantization == "none" else "float16"
        backbone = load(found, placement=Placement(placement.device, dtype, placement.threads))
        backbone.model.requires_grad_(False)
        return backbone
    from peft import prepare_model_for_kbit_training  # noqa: PLC0415  # takes seconds to import

    device, _ = placement.resolved()
    with quietly():
        model = AutoModelForCausalLM.from_pretrained(
            found.folder, quantization_config=bits(quantization), device_map={"": device}
        )
        tokenizer = AutoTokenizer.from_pretrained(found.folder)
    prepared = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    return Backbone(prepared, tokenizer, found.name, found.revision, untrained=True)


def halved(backbone: Backbone, quantization: Quantization) -> bool:
    """Whether passes compute in bfloat16: wherever that is fast, unless settings ask for float32.

    What is quantized says float32 of itself, since its norms are.
    """
    fast = backbone.device.type == "cuda" or bf16_on_cpu()
    return fast and (quantization != "none" or backbone.model.dtype != torch.float32)


def bits(quantization: Quantization) -> Any:
    """Appendix C.2: 8 bits in stage 2; in stage 3 4-bit NormalFloat with double quantization."""
    if quantization == "int8":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )


def optimizer_of(name: OptimizerName, weights: list[Tensor], rate: float, decay: float) -> Optimizer:
    """AdamW, or bitsandbytes' paged one, whose states leave a GPU that runs full."""
    if name == "adamw":
        return AdamW(weights, lr=rate, weight_decay=decay)
    from bitsandbytes.optim import PagedAdamW32bit  # noqa: PLC0415  # of extra `train`, on Linux alone

    paged: Optimizer = PagedAdamW32bit(weights, lr=rate, weight_decay=decay)
    return paged
