"""What this machine's processor can do for a model."""

import torch


def bf16_on_cpu() -> bool:
    """Whether this CPU multiplies bfloat16 natively; a torch that cannot tell counts as no."""
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16", False))
