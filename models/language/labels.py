"""Labels scored from logits, never parsed out of text.

Every answer that a prompt may get, of every slot, stands in one token tree behind the prompt. A forward pass
over prompt and tree, in which a node sees the prompt and its own ancestors, scores them all at once: the
prompt is read once, and no cache is copied for a label.

A label's score is the log-probability of its tokens given that some label of its slot is written: at each
fork the model's distribution over the forking tokens alone. So it sums to 1 over a slot's labels by
construction, and a label of many tokens is not punished for its length.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_uppercase

import torch
from torch import Tensor

from tracker.stances import Emotion, Expressed, Sentiment, TriggerKind

Encode = Callable[[str], list[int]]
LETTERS = ascii_uppercase  # one for each turn shown: a window's twelve, and the new turn
ROOT = -1  # the prompt's last token


@dataclass(frozen=True)
class Slot:
    """One question: the cue before its answer, and the word for each label."""

    cue: str
    words: Mapping[str, str]

    @classmethod
    def of(cls, cue: str, labels: type[StrEnum]) -> "Slot":
        """A slot whose words are the labels themselves."""
        return cls(cue, {label: label.value for label in labels})

    def answer(self, label: str) -> str:
        """The line that gives `label`, as a model would write it."""
        return f"{self.cue}: {self.words[label]}"


EXPRESSED = Slot.of("Position", Expressed)
EMOTION = Slot.of("Emotion", Emotion)
SENTIMENT = Slot.of("Sentiment", Sentiment)
TRIGGER = Slot(
    "Cause",
    {
        TriggerKind.FACTUAL_LOGICAL: "facts",
        TriggerKind.EMOTIONAL_VALUE: "feelings",
        TriggerKind.PERSONAL_EXPERIENCE: "experience",
        TriggerKind.SOCIAL_INFLUENCE: "pressure",
    },
)


def source(turns: int) -> Slot:
    """The slot that asks which of the turns shown was the trigger, by its letter."""
    return Slot("Source", {letter: letter for letter in LETTERS[:turns]})


class Tree:
    """The token tree of some slots: what is read behind a prompt, and how labels are scored from it.

    Each slot grows its own branch from the prompt's last token; its labels share the cue and fork behind it.
    """

    def __init__(self, slots: Sequence[Slot], encode: Encode) -> None:
        self.slots = tuple(slots)
        self.ids: list[int] = []
        self.parents: list[int] = []
        self._children: list[dict[int, int]] = []  # by node: token -> node
        self._paths = [self._grown(slot, encode) for slot in self.slots]
        self.forks = [node for node, children in enumerate(self._children) if len(children) > 1]

    @property
    def depths(self) -> list[int]:
        """How far each node stands behind the prompt's last token, from 0."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(0 if parent == ROOT else depths[parent] + 1)
        return depths

    def sees(self) -> Tensor:
        """[nodes, nodes] bool: a node sees its ancestors and itself."""
        sees = torch.eye(len(self.ids), dtype=torch.bool)
        for node, parent in enumerate(self.parents):
            if parent != ROOT:
                sees[node] |= sees[parent]
        return sees

    def scores(self, logits: Tensor) -> dict[str, Tensor]:
        """Log-probabilities [batch, labels] by cue, from logits [batch, forks, vocabulary]."""
        at = {
            node: torch.log_softmax(logits[:, index, list(self._children[node])].float(), dim=-1)
            for index, node in enumerate(self.forks)
        }
        return {
            slot.cue: torch.stack([self._score(path, at, logits) for path in paths], dim=-1)
            for slot, paths in zip(self.slots, self._paths, strict=True)
        }

    def _score(self, path: list[int], at: Mapping[int, Tensor], logits: Tensor) -> Tensor:
        score = torch.zeros(len(logits), device=logits.device)
        for node, after in itertools.pairwise(path):
            if node in at:
                score = score + at[node][:, list(self._children[node].values()).index(after)]
        return score

    def _grown(self, slot: Slot, encode: Encode) -> list[list[int]]:
        """The path of each label, through nodes shared as far as their tokens are."""
        root: dict[int, int] = {}
        paths = [self._path(root, encode(slot.answer(label))) for label in slot.words]
        leaves = {path[-1] for path in paths}
        if len(root) > 1 or len(leaves) < len(paths) or any(self._children[leaf] for leaf in leaves):
            raise ValueError(f"{slot.cue}: this tokenizer lets one label begin with another")
        return paths

    def _path(self, root: dict[int, int], tokens: list[int]) -> list[int]:
        path: list[int] = []
        for token in tokens:
            children = self._children[path[-1]] if path else root
            if token not in children:
                children[token] = len(self.ids)
                self.ids.append(token)
                self.parents.append(path[-1] if path else ROOT)
                self._children.append({})
            path.append(children[token])
        return path
