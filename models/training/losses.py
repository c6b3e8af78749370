"""The losses of the heads: each a mean over the examples that have its label, 0 where none has."""

from collections.abc import Callable, Sequence
from enum import StrEnum

import torch
from torch import Tensor
from torch.nn import functional

from models.encoder.features import Features
from models.encoder.network import AFTER, EMOTIONS, EXPRESSED, SENTIMENTS, TRIGGERS, Outputs
from models.training.examples import Labels
from models.training.options import Weights

IGNORED = -100


def losses(outputs: Outputs, features: Sequence[Features], labels: Sequence[Labels]) -> dict[str, Tensor]:
    """By head; the order of `features` and `labels` is the batch's."""
    return {
        "expressed": _classes(outputs.expressed, EXPRESSED, labels, lambda one: one.expressed),
        "after": _classes(outputs.after, AFTER, labels, lambda one: one.after),
        "emotion": _classes(outputs.emotion, EMOTIONS, labels, lambda one: one.emotion),
        "sentiment": _classes(outputs.sentiment, SENTIMENTS, labels, lambda one: one.sentiment),
        "relevance": _relevance(outputs.relevance, labels),
        "trigger": _classes(outputs.trigger, TRIGGERS, labels, lambda one: one.trigger),
        "pointer": _pointer(outputs.pointer, features, labels),
        "sides": _sides(outputs.sides, features, labels),
    }


def total(found: dict[str, Tensor], weights: Weights) -> Tensor:
    """The weighted sum that training minimises."""
    return torch.stack([getattr(weights, name) * loss for name, loss in found.items()]).sum()


def _classes(
    logits: Tensor,
    order: Sequence[StrEnum],
    labels: Sequence[Labels],
    pick: Callable[[Labels], StrEnum | None],
) -> Tensor:
    picked = [pick(one) for one in labels]
    places = [IGNORED if label is None else order.index(label) for label in picked]
    target = torch.tensor(places, device=logits.device)
    summed = functional.cross_entropy(logits, target, ignore_index=IGNORED, reduction="sum")
    return summed / max(1, sum(place != IGNORED for place in places))


def _relevance(logits: Tensor, labels: Sequence[Labels]) -> Tensor:
    known = [row for row, one in enumerate(labels) if one.relevance is not None]
    target = torch.tensor([labels[row].relevance for row in known], device=logits.device)
    summed = functional.binary_cross_entropy_with_logits(logits[known], target.float(), reduction="sum")
    return summed / max(1, len(known))


def _pointer(logits: Tensor, features: Sequence[Features], labels: Sequence[Labels]) -> Tensor:
    """Of a flip whose trigger is shown: -log of the share that all parts of all its trigger turns have.

    Which part of a turn moved the holder nobody labelled; the pointer is free to find out.
    """
    right = torch.zeros(logits.shape, dtype=torch.bool, device=logits.device)
    for row, (one, label) in enumerate(zip(features, labels, strict=True)):
        for place, part in enumerate(one.parts):
            right[row, place] = one.shown[part.turn] in label.sources
    rows = right.any(dim=-1)
    shares = logits.log_softmax(dim=-1)[rows].masked_fill(~right[rows], float("-inf"))
    return -shares.logsumexp(dim=-1).sum() / max(1, int(rows.sum()))


def _sides(logits: Tensor, features: Sequence[Features], labels: Sequence[Labels]) -> Tensor:
    """Of every part whose turn has a known side: labelled once, it teaches wherever it is shown."""
    known = [
        (row, place, EXPRESSED.index(side))
        for row, (one, label) in enumerate(zip(features, labels, strict=True))
        for place, part in enumerate(one.parts)
        if (side := label.sides.get(one.shown[part.turn])) is not None
    ]
    if not known:
        return logits.sum() * 0.0
    rows, places, target = (torch.tensor(column, device=logits.device) for column in zip(*known, strict=True))
    return functional.cross_entropy(logits[rows, places], target)
