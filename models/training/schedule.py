"""The order of a run's batches, a function of its seed alone: so a killed run goes on where it was.

Examples are shuffled, taken by pools, sorted by length in each pool (a batch of like lengths pads little),
cut into batches, and these shuffled again. No state is kept: a pool's chances come from its own number.
"""

import math
import random
from collections.abc import Iterator, Sequence

from models.encoder.features import Features, Featurizer
from models.training.examples import Example, Labels, varied
from models.training.options import EncoderOptions

POOL = 32  # batches

Batched = tuple[list[Features], list[Labels]]


class Schedule:
    """Batches of examples by step, from 0 to `steps`."""

    def __init__(self, examples: Sequence[Example], featurizer: Featurizer, options: EncoderOptions) -> None:
        self._examples, self._featurizer, self._options = examples, featurizer, options
        self._foreign = _by_language(examples)
        self.epoch_steps = math.ceil(len(examples) / options.batch)
        self.steps = self.epoch_steps * options.epochs

    def batches(self, start: int) -> Iterator[Batched]:
        """Every batch from step `start` on."""
        for step in range(start - start % self.epoch_steps, self.steps, self.epoch_steps):
            yield from self._epoch(step // self.epoch_steps, max(0, start - step))

    def _epoch(self, epoch: int, start: int) -> Iterator[Batched]:
        order = list(range(len(self._examples)))
        random.Random(f"{self._options.seed}/{epoch}").shuffle(order)
        size = self._options.batch * POOL
        for pool in range(start // POOL, math.ceil(len(order) / size)):
            chance = random.Random(f"{self._options.seed}/{epoch}/{pool}")
            places = order[pool * size : (pool + 1) * size]
            yield from self._pool(places, chance)[max(0, start - pool * POOL) :]

    def _pool(self, places: Sequence[int], chance: random.Random) -> list[Batched]:
        options = self._options
        examples = [
            varied(example, chance, options.drawn, self._others(example), options.foreign)
            for example in (self._examples[place] for place in places)
        ]
        features = self._featurizer([example.request for example in examples])
        by_length = sorted(range(len(examples)), key=lambda place: len(features[place].ids))
        cut = [by_length[at : at + options.batch] for at in range(0, len(by_length), options.batch)]
        chance.shuffle(cut)
        return [([features[at] for at in part], [examples[at].labels for at in part]) for part in cut]

    def _others(self, example: Example) -> list[str]:
        return self._foreign.get(example.request.turn.language or "", [])


def _by_language(examples: Sequence[Example]) -> dict[str, list[str]]:
    """The propositions of each language: a foreign one in another tongue would be too easy to tell."""
    found: dict[str, dict[str, None]] = {}
    for example in examples:
        found.setdefault(example.request.turn.language or "", {})[example.request.proposition] = None
    return {language: list(propositions) for language, propositions in found.items()}
