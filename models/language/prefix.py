"""Reading on from what was read: a batch's cache, and the fixed instruction's, computed once an adapter.

A cache grows as it is read from, but only by concatenation: its tensors are never written to. So every batch
starts from views of the instruction's cache, expanded to its rows, and the instruction is never read twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from models.language.labels import Tree


@dataclass
class Context:
    """Rows that are being read: what is cached, which cached places hold real tokens, how many those are."""

    cache: DynamicCache
    real: Tensor  # [rows, places] bool
    length: Tensor  # [rows]: the next token's position


class Prefix:
    """The instruction, read once."""

    def __init__(self, model: PreTrainedModel, ids: Sequence[int], *, learning: bool = False) -> None:
        """`learning`: gradients flow into how the instruction is read."""
        self.ids = tuple(ids)
        context = blank(model, rows=1)
        if ids:
            with torch.set_grad_enabled(learning):
                extend(model, context, [list(ids)])
        self.layers = [(layer.keys, layer.values) for layer in context.cache.layers]
        self._real = context.real

    def rows(self, rows: int) -> Context:
        """A context of `rows` rows that have all read the instruction."""
        views = [(k.expand(rows, -1, -1, -1), v.expand(rows, -1, -1, -1)) for k, v in self.layers]
        real = self._real.expand(rows, -1)
        return Context(DynamicCache(views), real, real.sum(dim=1))


def blank(model: PreTrainedModel, rows: int) -> Context:
    """A context that has read nothing."""
    real = torch.zeros(rows, 0, dtype=torch.bool, device=model.device)
    return Context(DynamicCache(), real, real.sum(dim=1))


def extend(
    model: PreTrainedModel,
    context: Context,
    rows: Sequence[Sequence[int]],
    tree: Tree | None = None,
    last: int = 1,
) -> Tensor:
    """Read one more stretch of tokens in each row, and a tree behind it, which is then forgotten.

    Returns logits [rows, `last`, vocabulary] of each row's last places, or, with a tree, of its forks.
    Rows may differ in length: shorter ones are padded on the left, and nothing sees the padding.
    """
    ids, real = padded(rows, model.device)
    width, nodes = ids.shape[1], len(tree.ids) if tree else 0
    positions = (context.length[:, None] + real.cumsum(dim=1) - 1).clamp(min=0)
    length = context.length + real.sum(dim=1)
    sees = torch.ones(width, width, dtype=torch.bool).tril()
    keep = list(range(width - last, width))
    if tree:
        ids = torch.cat([ids, _each_row(tree.ids, ids)], dim=1)
        positions = torch.cat([positions, length[:, None] + _each_row(tree.depths, ids)], dim=1)
        sees = torch.cat([torch.nn.functional.pad(sees, (0, nodes)), _seen_by(tree, width)])
        keep = [width + node for node in tree.forks]
    shown = torch.nn.functional.pad(torch.cat([context.real, real], dim=1), (0, nodes), value=True)
    output = model(
        input_ids=ids,
        attention_mask=_mask(shown, sees.to(model.device), model.dtype),
        position_ids=positions,
        past_key_values=context.cache,
        use_cache=True,
        logits_to_keep=torch.tensor(keep, device=model.device),
    )
    if nodes:
        context.cache.crop(-nodes)
    context.real, context.length = torch.cat([context.real, real], dim=1), length
    logits: Tensor = output.logits
    return logits


def padded(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """(ids, real), both [rows, longest]: on the left, places that hold no token."""
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows], device=device)
    real = torch.tensor([[False] * (width - len(row)) + [True] * len(row) for row in rows], device=device)
    return ids, real


def _each_row(values: Sequence[int], like: Tensor) -> Tensor:
    return torch.tensor(values, device=like.device).expand(len(like), -1)


def _seen_by(tree: Tree, width: int) -> Tensor:
    """[nodes, width + nodes] bool: a node sees all of the stretch before the tree, and its ancestors."""
    return torch.nn.functional.pad(tree.sees(), (width, 0), value=True)


def _mask(shown: Tensor, sees: Tensor, dtype: torch.dtype) -> Tensor:
    """The additive mask [rows, 1, new, all]: a new token sees what `sees` says and all cached, if real.

    Finite in bfloat16 too, to which autocast rounds it: float32's least number would be -inf there, and a
    row of padding, which sees nothing, NaN.
    """
    before = shown.shape[1] - sees.shape[1]
    allowed = torch.nn.functional.pad(sees, (before, 0), value=True)[None] & shown[:, None, :]
    mask = torch.zeros(allowed.shape, dtype=dtype, device=shown.device)
    least = max(torch.finfo(dtype).min, torch.finfo(torch.bfloat16).min)
    return mask.masked_fill(~allowed, least)[:, None]
