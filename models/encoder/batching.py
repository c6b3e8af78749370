"""Features to tensors: ids padded on the right, and rows of weights that turn hidden states into means."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from models.encoder.features import Features, Span

POOLED = 3  # the whole, the new turn, the proposition


@dataclass(frozen=True)
class Batch:
    """B examples of at most T tokens with at most P parts.

    `regions` [B, 3, T] and `parts` [B, P, T] are float weights whose rows sum to 1 (to 0 where there is no
    such part); `real` [B, P] says which parts are; `roles` and `places` [B, P] are those of a part's turn.
    """

    ids: Tensor  # [B, T] int64
    mask: Tensor  # [B, T] int64
    types: Tensor  # [B, T] int64: 1 on the new turn
    regions: Tensor
    parts: Tensor
    real: Tensor
    roles: Tensor
    places: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same on a device."""
        return Batch(*(getattr(self, item.name).to(device) for item in fields(self)))


def collate(features: Sequence[Features], pad: int) -> Batch:
    """One batch of these, in order."""
    rows, width = len(features), max(len(one.ids) for one in features)
    most = max(len(one.parts) for one in features)
    ids = torch.full((rows, width), pad)
    mask, types = torch.zeros(rows, width, dtype=torch.long), torch.zeros(rows, width, dtype=torch.long)
    regions, parts = torch.zeros(rows, POOLED, width), torch.zeros(rows, most, width)
    real = torch.zeros(rows, most, dtype=torch.bool)
    roles, places = torch.zeros(rows, most, dtype=torch.long), torch.zeros(rows, most, dtype=torch.long)
    for row, one in enumerate(features):
        length = len(one.ids)
        ids[row, :length] = torch.tensor(one.ids)
        mask[row, :length] = 1
        types[row, slice(*one.turn)] = 1
        for region, span in enumerate(((0, length), one.turn, one.proposition)):
            _spread(regions[row, region], span)
        for place, part in enumerate(one.parts):
            _spread(parts[row, place], part.span)
            real[row, place] = True
            roles[row, place], places[row, place] = one.roles[part.turn], part.turn
    return Batch(ids, mask, types, regions, parts, real, roles, places)


def _spread(weights: Tensor, span: Span) -> None:
    start, end = span
    weights[start:end] = 1.0 / max(1, end - start)
