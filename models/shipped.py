"""The adapters that come with Volteface, by engine; each has its model card and its policy beside it."""

from collections.abc import Mapping
from pathlib import Path

ENCODER = Path(__file__).parent / "encoder" / "adapters" / "multilingual-e5-small"
ADAPTERS: Mapping[str, Path] = {"encoder": ENCODER}
POLICY = "policy.toml"  # beside any adapter: what `volteface train policy` fitted to it
