"""The encoder adapter that comes with Volteface, with its model card, temperatures and policy beside it."""

from pathlib import Path

ADAPTER = Path(__file__).parent / "adapters" / "multilingual-e5-small"
POLICY = "policy.toml"  # beside any adapter: what `volteface train policy` fitted to it
