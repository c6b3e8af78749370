"""The forward passes of training: samples in, each answer's loss out (equation 8).

A slot's loss is -log of the share that its right labels have among the slot's labels, as `Tree.scores` and
the engine give it, not of the whole vocabulary's: the engine never looks at any other token, so probability
moved there would teach nothing that is served. All slots of a prompt are learned from in one pass, behind
the prompt's last token, under the engine's own mask. Words are learned token by token over the vocabulary,
since they are written; a prompt's own tokens are never a target.

An instruction is read once a pass, with gradients, and shared by its rows. Gradient checkpointing keeps no
cache, so there every row reads it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from models.language.prefix import Context, Prefix, blank, extend
from models.training.samples import Sample, Sampler, Slotted, Written

IGNORED = -100
WORDS = "words"
LEAST_CHANCE = 1e-6  # of a label that the engine rules out


class Answers(NamedTuple):
    """The losses of one kind of answer, one a sample that has it."""

    name: str  # a cue in small letters, or `words`
    losses: Tensor


def answers(sampler: Sampler, samples: Sequence[Sample], *, shared: bool = True) -> Iterator[list[Answers]]:
    """What each pass gives; samples that share an instruction and a tree are read together."""
    for group in _groups(samples):
        slotted = [one for one in group if isinstance(one, Slotted)]
        written = [one for one in group if isinstance(one, Written)]
        yield _slots(sampler, slotted, shared) if slotted else [_words(sampler, written, shared)]


def _groups(samples: Sequence[Sample]) -> list[list[Sample]]:
    found: dict[tuple[str, str], list[Sample]] = {}
    for one in samples:
        found.setdefault(one.kind, []).append(one)
    return list(found.values())


def _slots(sampler: Sampler, samples: Sequence[Slotted], shared: bool) -> list[Answers]:
    tree = sampler.tree(samples[0].tree)
    context, rows = _begun(sampler, samples, shared)
    scores = tree.scores(extend(sampler.backbone.model, context, rows, tree))
    found = []
    for slot in tree.slots:
        labelled = [place for place, one in enumerate(samples) if slot.cue in one.right]
        if labelled:
            right = [samples[place].right[slot.cue] for place in labelled]
            chances = [samples[place].chances.get(slot.cue) for place in labelled]
            found.append(Answers(slot.cue.lower(), _missed(scores[slot.cue][labelled], right, chances)))
    return found


def _missed(
    scores: Tensor, right: Sequence[Sequence[int]], chances: Sequence[Sequence[float] | None]
) -> Tensor:
    """[rows]: -log of the right labels' share, once each label was multiplied by its chance."""
    even = [1.0] * scores.shape[1]
    weights = torch.tensor([row or even for row in chances], device=scores.device)
    shares = (scores + weights.clamp(min=LEAST_CHANCE).log()).log_softmax(dim=-1)
    return -torch.stack([row[list(places)].logsumexp(0) for row, places in zip(shares, right, strict=True)])


def _words(sampler: Sampler, samples: Sequence[Written], shared: bool) -> Answers:
    context, rows = _begun(sampler, samples, shared)
    rows = [[*row, *one.answer[:-1]] for row, one in zip(rows, samples, strict=True)]
    target = targets(samples, sampler.backbone.device)
    logits = extend(sampler.backbone.model, context, rows, last=target.shape[1]).float()
    return Answers(WORDS, words_missed(logits, target))


def words_missed(logits: Tensor, target: Tensor) -> Tensor:
    """[rows]: a mean over an answer's tokens, so that a sentence counts what a label counts."""
    missed = functional.cross_entropy(logits.transpose(1, 2), target, ignore_index=IGNORED, reduction="none")
    return missed.sum(dim=1) / (target != IGNORED).sum(dim=1)


def targets(samples: Sequence[Written], device: torch.device) -> Tensor:
    """[rows, longest answer]: what stands behind each of a row's last places; -100 where that is prompt."""
    longest = max(len(one.answer) for one in samples)
    rows = [[IGNORED] * (longest - len(one.answer)) + one.answer for one in samples]
    return torch.tensor(rows, device=device)


def _begun(sampler: Sampler, samples: Sequence[Sample], shared: bool) -> tuple[Context, list[list[int]]]:
    """A context that has read the instruction, and what each row reads on."""
    head, tail = sampler.frame(samples[0].instruction)
    model, bodies = sampler.backbone.model, [[*one.body, *tail] for one in samples]
    if shared:
        return Prefix(model, head, learning=True).rows(len(samples)), bodies
    return blank(model, rows=len(samples)), [[*head, *body] for body in bodies]
