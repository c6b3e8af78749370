"""An encoder in int8: its linear layers multiply 8-bit integers.

Weights have a scale a row. So has what goes through a layer, measured as it comes: one scale a batch, as in
torch's own form, would let neighbours change an answer much more. All that is no product of weights
(embeddings, attention, norms, the heads) stays float32.
"""

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from models.hardware import int8_on_cpu
from models.language.settings import InvalidSetting

MOST = 127  # -128 is left out: scales are symmetric
LEAST = 1e-12  # of what is divided by: a row of zeros stays one


class Int8Linear(nn.Module):
    """A linear layer's weights in int8; float32 in and out."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        values, scales = quantized(linear.weight.detach().float())
        self.register_buffer("values", values.t().contiguous())
        self.register_buffer("scales", scales[:, 0].contiguous())
        self.bias = linear.bias
        self.values: Tensor  # [in, out]
        self.scales: Tensor  # [out]

    def forward(self, inputs: Tensor) -> Tensor:
        """The layer's output."""
        values, scales = quantized(inputs.reshape(-1, inputs.shape[-1]))
        outputs = torch.mul(torch._int_mm(values, self.values), self.scales).mul_(scales)
        if self.bias is not None:
            outputs.add_(self.bias)
        return outputs.view(*inputs.shape[:-1], -1)


def quantized(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as int8 [rows, width] and the scale of each [rows, 1]: their product is about what was given."""
    scales = rows.abs().amax(dim=-1, keepdim=True).clamp_(min=LEAST).div_(MOST)
    return (rows / scales).round_().to(torch.int8), scales


def quantize(encoder: PreTrainedModel) -> None:
    """Put int8 layers in the place of an encoder's own."""
    for module in list(encoder.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Linear):
                setattr(module, name, Int8Linear(child))


def check(device: torch.device) -> None:
    """Raises InvalidSetting where int8 would be no gain."""
    if device.type != "cpu":
        remedy = "use auto there, or set the device to cpu"
        raise InvalidSetting("dtype", f"int8 is made for CPUs, and this is {device}", remedy)
    if not int8_on_cpu():
        got = "int8, but this CPU has no avx512_vnni, avx_vnni or amx_int8, or torch makes no use of them"
        raise InvalidSetting("dtype", got, "use auto or float32")
