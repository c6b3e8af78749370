"""What each step learns from, varied by chance: the encoder from examples, a language model from lessons."""

import random
from collections.abc import Iterator, Sequence

import msgspec

from models.encoder.features import Features, Featurizer
from models.training.examples import Example, Labels
from models.training.lessons import Lesson, Reading
from models.training.options import EncoderOptions
from models.training.order import Order
from models.training.samples import Sample, Sampler
from models.training.stages import ReasoningOptions, TuningOptions
from models.training.teaching import NothingToLearn
from models.training.variation import masked, reworded, varied

Batched = tuple[list[Features], list[Labels]]


class Schedule:
    """The encoder's: batches of examples by step, from 0 to `steps`."""

    def __init__(self, examples: Sequence[Example], featurizer: Featurizer, options: EncoderOptions) -> None:
        self._examples, self._featurizer, self._options = examples, featurizer, options
        self._foreign = Foreign(examples)
        count, key = len(examples), lambda one: len(one[0].ids)
        self._order = Order(count, options.batch, options.epochs, options.seed, self._made, key)
        self.epoch_steps, self.steps = self._order.epoch_steps, self._order.steps

    def batches(self, start: int) -> Iterator[Batched]:
        """Every batch from step `start` on."""
        for batch in self._order.singly(start):
            yield [features for features, _ in batch], [labels for _, labels in batch]

    def _made(self, places: Sequence[int], chance: random.Random) -> list[tuple[Features, Labels]]:
        options = self._options
        examples = [
            reworded(
                varied(example, chance, options.drawn, self._foreign.beside(example), options.foreign),
                chance,
                options,
            )
            for example in (self._examples[place] for place in places)
        ]
        features = self._featurizer([example.request for example in examples])
        return [
            (masked(one, chance, options.masked, self._featurizer.unknown), example.labels)
            for one, example in zip(features, examples, strict=True)
        ]


class Course:
    """Of stages 2 and 3: the microbatches of each step; an epoch's last step may hold fewer."""

    def __init__(self, lessons: Sequence[Lesson], sampler: Sampler, options: TuningOptions) -> None:
        """Raises NothingToLearn."""
        self._lessons = [lesson for lesson in lessons if sampler.fits(lesson, options.longest)]
        if not self._lessons:
            raise NothingToLearn(f"no dialogue teaches anything in {options.longest} tokens")
        self._sampler, self._options = sampler, options
        self._foreign = Foreign([one.example for one in self._lessons if isinstance(one, Reading)])
        # Of one kind first: what is read in one pass shares its instruction.
        count, key = len(self._lessons), lambda one: (one.kind, one.length)
        self._order = Order(
            count, options.batch, options.epochs, options.seed, self._made, key, options.accumulation
        )
        self.epoch_steps, self.steps = self._order.epoch_steps, self._order.steps

    def batches(self, start: int) -> Iterator[list[list[Sample]]]:
        """The microbatches of every step from `start` on."""
        return self._order.batches(start)

    def _made(self, places: Sequence[int], chance: random.Random) -> list[Sample]:
        return [self._sampler(self._varied(self._lessons[place], chance)) for place in places]

    def _varied(self, lesson: Lesson, chance: random.Random) -> Lesson:
        """A turn may be shown under another state or proposition; a flip is what it is."""
        options = self._options
        if not isinstance(lesson, Reading) or not isinstance(options, ReasoningOptions):
            return lesson
        others = self._foreign.beside(lesson.example)
        example = varied(lesson.example, chance, options.drawn, others, options.foreign)
        return msgspec.structs.replace(lesson, example=example)


class Foreign:
    """The propositions of each language: a foreign one in another tongue would be too easy to tell."""

    def __init__(self, examples: Sequence[Example]) -> None:
        found: dict[str, dict[str, None]] = {}
        for example in examples:
            found.setdefault(example.request.turn.language or "", {})[example.request.proposition] = None
        self._found = {language: list(propositions) for language, propositions in found.items()}

    def beside(self, example: Example) -> Sequence[str]:
        """Those of the example's language."""
        return self._found.get(example.request.turn.language or "", ())
