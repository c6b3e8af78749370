"""The port Chat on a backbone in this process: labels scored from its logits, words written greedily.

A talk's instruction is read once: the caches of the last few instructions are kept. What it says besides is
text like any other to the tokenizer, so nobody in it can pose as the template's own marks.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch

from models.language.backbone import Backbone
from models.language.chat import Talk
from models.language.labels import Slot, Tree
from models.language.prefix import Context, Prefix, extend
from models.language.scoring import batches
from models.language.writing import greedy
from models.reader import ReaderRejected

BATCH_TOKENS = 4096
PREFIXES = 8  # instructions whose caches are kept: one a role, and some to spare
CUE = "Answer"
END = "\n"  # behind each label, so that none is the beginning of another


class _Batch(NamedTuple):
    """Talks of one instruction that are read together: their places, what was read of them, what was not."""

    places: list[int]
    context: Context
    rows: list[list[int]]


class LocalChat:
    """Talks with a backbone; not safe between threads, as no engine is.

    Raises ReaderRejected for a talk that is longer than the model can attend to.
    """

    def __init__(
        self, backbone: Backbone, batch_tokens: int = BATCH_TOKENS, *, prefixes: int = PREFIXES
    ) -> None:
        self.backbone, self._batch_tokens = backbone, batch_tokens
        self._prefix = lru_cache(maxsize=prefixes)(lambda head: Prefix(backbone.model, head))

    @property
    def name(self) -> str:
        """The model's name."""
        return self.backbone.name

    @property
    def revision(self) -> str:
        """Its weights' revision, and its adapter's."""
        return self.backbone.revision

    @property
    def untrained(self) -> bool:
        """Whether it has learned nothing about stance yet."""
        return self.backbone.untrained

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return len(self.backbone.encode(text))

    def room(self, instructions: Iterable[str]) -> int:
        """Tokens that a question and its answer may have together, behind the longest of these."""
        frames = (self.backbone.frame(instruction) for instruction in instructions)
        return self.backbone.positions - max(len(head) + len(tail) for head, tail in frames)

    def write(self, talks: Sequence[Talk], limit: int) -> list[str]:
        """Words, at most `limit` tokens, stripped; always the same for the same talk."""
        written: dict[int, str] = {}
        with torch.inference_mode():
            for places, context, rows in self._batches(talks, limit, limit):
                answers = greedy(self.backbone.model, context, rows, self.backbone.stops, limit)
                texts = [self.backbone.decode(tokens).strip() for tokens in answers]
                written.update(zip(places, texts, strict=True))
        return [written[place] for place in range(len(talks))]

    def choose(self, talks: Sequence[Talk], labels: Sequence[str]) -> list[list[float]]:
        """A probability a label, summing to 1, from logits: nothing is written, nothing parsed."""
        if len(labels) == 1:
            return [[1.0] for _ in talks]  # a tree of one path has no fork to score
        slot = Slot(CUE, {label: label + END for label in labels})
        tree = Tree((slot,), self.backbone.encode)
        chosen: dict[int, list[float]] = {}
        with torch.inference_mode():
            for places, context, rows in self._batches(talks, len(tree.ids), max(tree.depths) + 1):
                scores = tree.scores(extend(self.backbone.model, context, rows, tree))[CUE]
                chosen.update(zip(places, scores.softmax(dim=-1).tolist(), strict=True))
        return [chosen[place] for place in range(len(talks))]

    def _batches(self, talks: Sequence[Talk], more: int, depth: int) -> Iterator[_Batch]:
        """Every talk once, by instruction, then by length; each grows by `more` tokens, `depth` positions."""
        rows: dict[int, list[int]] = {}
        by_head: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        for place, talk in enumerate(talks):
            head, rows[place] = self._ids(talk, depth)
            by_head[head].append(place)
        for head, members in by_head.items():
            for part in batches([len(rows[place]) + more for place in members], self._batch_tokens):
                places = [members[index] for index in part]
                context = self._prefix(head).rows(len(places))
                yield _Batch(places, context, [rows[place] for place in places])

    def _ids(self, talk: Talk, depth: int) -> tuple[tuple[int, ...], list[int]]:
        """What a talk shares with all of its instruction, and the tokens behind that."""
        standing, said = (talk[0].content, talk[1:]) if talk[0].role == "system" else ("", talk)
        head, *between = self.backbone.pieces(standing, [message.role for message in said])
        row: list[int] = []
        for message, piece in zip(said, between, strict=True):
            row += self.backbone.encode(message.content) + piece
        if (needed := len(head) + len(row) + depth) > self.backbone.positions:
            raise ReaderRejected(f"{needed} tokens; this model attends to {self.backbone.positions}")
        return tuple(head), row
