"""From a lesson to tokens: exactly the prompt that the engine shows, and what should stand behind it."""

from collections.abc import Sequence
from functools import cache
from typing import Literal

import msgspec

from models.language import generative, triggers
from models.language.backbone import Backbone
from models.language.generative import fitted
from models.language.labels import EMOTION, EXPRESSED, SENTIMENT, TRIGGER, Slot, Tree
from models.language.local_chat import CUE, END
from models.language.prompts import (
    INSTRUCTION,
    REASON_INSTRUCTION,
    explain_body,
    lettered,
    moved_body,
    observe_body,
)
from models.language.triggers import SOURCE, weights_of
from models.reader import ObserveRequest
from models.training.examples import Example, mover
from models.training.lessons import Cause, Choice, Lesson, Reading, Reason, Text

TreeName = Literal["observe", "explain"] | tuple[str, ...]  # a tuple: the labels of one choice
SLOTS: dict[TreeName, tuple[Slot, ...]] = {"observe": generative.SLOTS, "explain": triggers.SLOTS}


class Slotted(msgspec.Struct, frozen=True):
    """A prompt behind which a tree's slots are scored: of each cue the right labels, by their places.

    A cue that nobody labelled is missing. `chances` are what the engine multiplies a slot's labels by.
    """

    instruction: str
    body: list[int]
    tree: TreeName
    right: dict[str, list[int]]
    chances: dict[str, list[float]] = {}

    @property
    def length(self) -> int:
        """Tokens behind the instruction."""
        return len(self.body)

    @property
    def kind(self) -> tuple[str, str]:
        """Samples of one kind can be read in one pass."""
        return self.instruction, str(self.tree)


class Written(msgspec.Struct, frozen=True):
    """A prompt behind which words are written, the token that ends them last."""

    instruction: str
    body: list[int]
    answer: list[int]

    @property
    def length(self) -> int:
        """Tokens behind the instruction."""
        return len(self.body) + len(self.answer)

    @property
    def kind(self) -> tuple[str, str]:
        """As above."""
        return self.instruction, "words"


Sample = Slotted | Written


class Sampler:
    """Makes samples for a model; a request gets `budget` tokens, as the engine gives it."""

    def __init__(self, backbone: Backbone, budget: int) -> None:
        self.backbone, self._budget = backbone, budget
        self.frame = cache(backbone.frame)  # tokens before and behind a body, by instruction
        self.tree = cache(lambda name: Tree(SLOTS.get(name) or (_chosen(name),), backbone.encode))
        self._end = end_of(backbone)

    def __call__(self, lesson: Lesson) -> Sample:
        """The sample of a lesson."""
        if isinstance(lesson, Reading):
            return self._reading(lesson.example)
        if isinstance(lesson, Cause):
            return self._cause(lesson)
        if isinstance(lesson, Reason):
            return self._written(REASON_INSTRUCTION, self._reason_body(lesson), lesson.words)
        if isinstance(lesson, Choice):
            return self._choice(lesson)
        return self._written(lesson.instruction, lesson.shown, lesson.answer)

    def fits(self, lesson: Lesson, longest: int) -> bool:
        """Whether a lesson can be taught: one in words that is short enough, a reason whose mover is in view.

        All else is cut to the budget. A reason that names what a prompt does not show would teach to invent.
        """
        if isinstance(lesson, Reason):
            return mover(self._fitted(lesson.example), [lesson.mover]) is not None
        if isinstance(lesson, Text | Choice):
            framed = sum(map(len, self.frame(lesson.instruction)))
            return self(lesson).length <= min(longest, self.backbone.positions - framed)
        return True

    def _reading(self, example: Example) -> Slotted:
        labels = example.labels
        said = (EXPRESSED, labels.expressed), (EMOTION, labels.emotion), (SENTIMENT, labels.sentiment)
        right = {slot.cue: [_place(slot, label)] for slot, label in said if label is not None}
        body = observe_body(self._fitted(example))
        return Slotted(INSTRUCTION, self.backbone.encode(body), "observe", right)

    def _cause(self, lesson: Cause) -> Slotted:
        request, labels = self._fitted(lesson.example), lesson.example.labels
        right = {} if labels.trigger is None else {TRIGGER.cue: [_place(TRIGGER, labels.trigger)]}
        letters = [letter for letter, turn in lettered(request).items() if turn.turn in labels.sources]
        if letters:
            right[SOURCE.cue] = [_place(SOURCE, letter) for letter in letters]
        body = self.backbone.encode(explain_body(request, lesson.after))
        return Slotted(INSTRUCTION, body, "explain", right, {SOURCE.cue: weights_of(request)})

    def _choice(self, lesson: Choice) -> Slotted:
        right = {CUE: [lesson.labels.index(label) for label in lesson.right]}
        return Slotted(lesson.instruction, self.backbone.encode(lesson.shown), lesson.labels, right)

    def _reason_body(self, lesson: Reason) -> str:
        request = self._fitted(lesson.example)
        moved_by = mover(request, [lesson.mover]) or request.turn
        return moved_body(request, lesson.after, moved_by, TRIGGER.words[lesson.kind])

    def _written(self, instruction: str, shown: str, words: str) -> Written:
        return Written(instruction, self.backbone.encode(shown), [*self.backbone.encode(words), self._end])

    def _fitted(self, example: Example) -> ObserveRequest:
        return fitted(self.backbone, example.request, self._budget)


def _chosen(labels: Sequence[str]) -> Slot:
    """The slot that `LocalChat.choose` scores."""
    return Slot(CUE, {label: label + END for label in labels})


def _place(slot: Slot, label: str) -> int:
    return list(slot.words).index(label)


def end_of(backbone: Backbone) -> int:
    """The token that ends an answer: of those that the model stops at, the first that it names itself."""
    named = backbone.model.generation_config.eos_token_id
    first = named[0] if isinstance(named, list) else named
    return int(first) if first is not None else min(backbone.stops)
