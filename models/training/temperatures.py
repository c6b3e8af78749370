"""Temperatures that make probabilities mean what they say: the one of least NLL on dev, head by head."""

from collections.abc import Callable, Sequence
from enum import StrEnum

import torch
from torch import Tensor

from models.encoder.calibration import Calibration
from models.encoder.engine import EncoderEngine
from models.encoder.features import Features
from models.encoder.network import EMOTIONS, EXPRESSED, SENTIMENTS, TRIGGERS, Outputs
from models.training.examples import Example, Labels

GRID = torch.logspace(-2.0, 2.0, 129, base=2.0)  # 1/4 to 4
FEWEST = 30  # labels; of fewer no temperature is fitted

_Row = tuple[Features, Labels, list[Tensor]]  # an example and its logits, a head each
_HEADS = ("expressed", "emotion", "sentiment", "trigger", "pointer")


def fitted(engine: EncoderEngine, examples: Sequence[Example]) -> Calibration:
    """The calibration of an engine's raw logits on examples under their gold states, beside gold sides.

    In service some of both are wrong, and what is read is a little less sure than it says.
    Relevance keeps 1: nothing on dev is labelled as irrelevant.
    """
    rows = _rows(engine, examples)
    return Calibration(
        expressed=_classes(rows, 0, EXPRESSED, lambda one: one.expressed),
        emotion=_classes(rows, 1, EMOTIONS, lambda one: one.emotion),
        sentiment=_classes(rows, 2, SENTIMENTS, lambda one: one.sentiment),
        trigger=_classes(rows, 3, TRIGGERS, lambda one: one.trigger),
        pointer=_pointer(rows),
    )


def _rows(engine: EncoderEngine, examples: Sequence[Example]) -> list[_Row]:
    found = []
    for places, features, outputs in engine.read([example.request for example in examples]):
        for row, place in enumerate(places):
            found.append((features[row], examples[place].labels, _logits(outputs, row)))
    return found


def _logits(outputs: Outputs, row: int) -> list[Tensor]:
    return [getattr(outputs, head)[row].cpu() for head in _HEADS]


def _classes(
    rows: Sequence[_Row], head: int, order: Sequence[StrEnum], pick: Callable[[Labels], StrEnum | None]
) -> float:
    known = [(logits[head], pick(labels)) for _, labels, logits in rows]
    right = [[order.index(label)] for _, label in known if label is not None]
    return _least([logits for logits, label in known if label is not None], right)


def _pointer(rows: Sequence[_Row]) -> float:
    """The right parts are all those of the trigger's turns; a trigger that is not shown teaches nothing."""
    logits, right = [], []
    for features, labels, heads in rows:
        parts = [at for at, part in enumerate(features.parts) if features.shown[part.turn] in labels.sources]
        if parts:
            logits.append(heads[-1][: len(features.parts)])
            right.append(parts)
    return _least(logits, right)


def _least(logits: Sequence[Tensor], right: Sequence[list[int]]) -> float:
    if len(logits) < FEWEST:
        return 1.0
    nll = torch.zeros(len(GRID))
    for one, places in zip(logits, right, strict=True):
        shares = (one[None] / GRID[:, None]).log_softmax(dim=-1)
        nll -= shares[:, places].logsumexp(dim=-1)
    return round(GRID[int(nll.argmin())].item(), 4)
