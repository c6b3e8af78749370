"""What this machine's processor can do for a model."""

import torch

_INT8 = ("avx512_vnni", "avx_vnni", "amx_int8")


def bf16_on_cpu() -> bool:
    """Whether this CPU multiplies bfloat16 natively; a torch that cannot tell counts as no."""
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16", False))


def int8_on_cpu() -> bool:
    """Whether this CPU multiplies int8 natively and this torch has it do so."""
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return hasattr(torch, "_int_mm") and any(capabilities.get(name, False) for name in _INT8)
