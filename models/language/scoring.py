"""Prompts scored in batches: frame, prefix and tree brought together, and label priors taken out."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.language.backbone import Backbone
from models.language.labels import Tree
from models.language.prefix import Prefix, extend

Scores = dict[str, Tensor]  # by cue: probabilities [rows, labels], in the order of the slot's words
LEAST_PRIOR = 1e-4


class Read(NamedTuple):
    """One batch that was read: which of the given bodies, and their label scores."""

    places: list[int]
    scores: Scores


class Scorer:
    """Scores label trees behind prompts whose frame is fixed.

    `cached=False` reads the instruction again in every row: to measure, and to prove that it changes nothing.
    """

    def __init__(
        self, backbone: Backbone, instruction: str, batch_tokens: int, *, cached: bool = True
    ) -> None:
        head, self._tail = backbone.frame(instruction)
        self._before, prefix = ([], head) if cached else (head, [])
        self.backbone, self._batch_tokens = backbone, batch_tokens
        self._prefix = Prefix(backbone.model, prefix)
        self.frame_tokens = len(head) + len(self._tail)

    def read(self, bodies: Sequence[str], tree: Tree) -> Iterator[Read]:
        """Read every body once, in batches of like lengths; log-probabilities, not yet freed of any prior."""
        rows = [self._before + self.backbone.encode(body) + self._tail for body in bodies]
        for places in batches([len(row) + len(tree.ids) for row in rows], self._batch_tokens):
            context = self._prefix.rows(len(places))
            logits = extend(self.backbone.model, context, [rows[place] for place in places], tree)
            yield Read(places, tree.scores(logits))

    def prior(self, bodies: Sequence[str], tree: Tree) -> Scores:
        """Log of each label's mean probability over bodies that say nothing: [1, labels] by cue.

        Bounded below: a label that a model rules out must not win for being ruled out a little less.
        """
        read = [part.scores for part in self.read(bodies, tree)]
        shares = {slot.cue: torch.cat([scores[slot.cue] for scores in read]).exp() for slot in tree.slots}
        return {
            cue: rows.mean(dim=0, keepdim=True).clamp(min=LEAST_PRIOR).log() for cue, rows in shares.items()
        }


def batches(lengths: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Places grouped so that rows x longest stays within `limit`, shortest first; at least one a group."""
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and (len(group) + 1) * lengths[place] > limit:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def corrected(scores: Tensor, prior: Tensor | None) -> Tensor:
    """Probabilities from log-probabilities: each divided by its label's prior, and made to sum to 1 again."""
    return torch.softmax(scores if prior is None else scores - prior, dim=-1)
