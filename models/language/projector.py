"""From a media vector to what a language model reads: the projector, and the splice of what it gives.

Equation (7) of StanceFlip: W2 GELU(LayerNorm(W1 x)), 1024 -> 4096 -> 4096 for ImageBind and Vicuna-7B; its
section 4.3 speaks of a linear one, so both are here. Vectors are brought to length 1 first (Appendix C.2).
"""

from pathlib import Path
from typing import Literal

import msgspec
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional

from models.language.settings import InvalidSetting

CONFIG, WEIGHTS = "projector.json", "projector.safetensors"
MEDIA = -1  # a place in token ids that a projected vector takes; no tokenizer gives it


class ProjectorConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a projector is, and the language model it was trained beside."""

    kind: Literal["linear", "mlp"]
    inputs: int
    hidden: int
    base_revision: str


class Projector(nn.Module):
    """Media vectors [..., inputs] to [..., hidden], as many as there are."""

    def __init__(self, config: ProjectorConfig) -> None:
        super().__init__()
        self.config = config
        first = nn.Linear(config.inputs, config.hidden)
        last = nn.Linear(config.hidden, config.hidden)
        mlp = nn.Sequential(first, nn.LayerNorm(config.hidden), nn.GELU(), last)
        self.layers: nn.Module = first if config.kind == "linear" else mlp

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors in the language model's space."""
        projected: Tensor = self.layers(functional.normalize(vectors, dim=-1))
        return projected


def spliced(embedding: nn.Module, ids: Tensor, projected: Tensor) -> Tensor:
    """Embeddings [rows, places, hidden] of token ids, projected vectors in the places of MEDIA, in order.

    Raises ValueError where places and vectors are not equally many.
    """
    places = ids == MEDIA
    if int(places.sum()) != len(projected):
        raise ValueError(f"{int(places.sum())} places for {len(projected)} media vectors")
    tokens: Tensor = embedding(ids.masked_fill(places, 0))
    # Not written in place: gradients must reach the projector.
    return tokens.masked_scatter(places[..., None], projected.to(tokens.dtype))


def save(projector: Projector, folder: Path) -> None:
    """Write weights and config; each file appears whole, the config last."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: values.detach().contiguous() for name, values in projector.state_dict().items()}
    partial = folder / f"{WEIGHTS}.partial"
    save_file(tensors, partial)
    partial.replace(folder / WEIGHTS)
    partial = folder / f"{CONFIG}.partial"
    partial.write_bytes(msgspec.json.encode(projector.config))
    partial.replace(folder / CONFIG)


def load(folder: Path) -> Projector:
    """A trained projector. Raises InvalidSetting where the folder holds none."""
    try:
        config = msgspec.json.decode((folder / CONFIG).read_bytes(), type=ProjectorConfig)
        projector = Projector(config)
        projector.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, msgspec.MsgspecError, SafetensorError, RuntimeError) as error:
        remedy = "name a folder made by volteface train alignment"
        raise InvalidSetting("projector", f"{folder}: {error}", remedy) from None
    return projector.eval()
