"""What this machine's processor can do for a model."""

import torch

_INT8 = ("avx512_vnni", "avx_vnni", "amx_int8")


def bf16_on_cpu() -> bool:
    """Whether this CPU multiplies bfloat16 natively; a torch that cannot tell counts as no."""
    return _has("avx512_bf16")


def int8_on_cpu() -> bool:
    """Whether this CPU multiplies int8 natively and this torch has it do so."""
    return hasattr(torch, "_int_mm") and _has(*_INT8)


def _has(*names: str) -> bool:
    """Any of these; a torch that cannot tell has none."""
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name, False) for name in names)
