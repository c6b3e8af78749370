"""The order in which a run learns, a function of its seed alone: so a killed run goes on where it was.

Places are shuffled, taken by pools, what is made of them sorted by a key in each pool (a batch of like
lengths pads little), cut into batches, and these shuffled again. No state is kept: a pool's chances come
from its own number.
"""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

POOL = 32  # batches

Made = TypeVar("Made")
Make = Callable[[Sequence[int], random.Random], list[Made]]


@dataclass(frozen=True)
class Order(Generic[Made]):
    """Batches of what `make` makes of places 0 to `count`, each once an epoch."""

    count: int
    batch: int
    epochs: int
    seed: int
    make: Make[Made]
    key: Callable[[Made], Any]
    accumulation: int = 1  # batches of a step

    @property
    def epoch_batches(self) -> int:
        """Batches of one epoch; its last may be a short one."""
        return math.ceil(self.count / self.batch)

    @property
    def epoch_steps(self) -> int:
        """Steps of one epoch; its last may be a short one."""
        return math.ceil(self.epoch_batches / self.accumulation)

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        return self.epoch_steps * self.epochs

    def batches(self, start: int) -> Iterator[list[list[Made]]]:
        """The batches of every step from `start` on; no step holds those of two epochs."""
        epoch, within = divmod(start, self.epoch_steps)
        batches = self.singly(epoch * self.epoch_batches + within * self.accumulation)
        for step in range(start, self.steps):
            left = self.epoch_batches - step % self.epoch_steps * self.accumulation
            yield list(itertools.islice(batches, min(self.accumulation, left)))

    def singly(self, start: int) -> Iterator[list[Made]]:
        """Every batch from number `start` on."""
        size = self.epoch_batches
        for first in range(start - start % size, size * self.epochs, size):
            yield from self._epoch(first // size, max(0, start - first))

    def _epoch(self, epoch: int, start: int) -> Iterator[list[Made]]:
        order = list(range(self.count))
        random.Random(f"{self.seed}/{epoch}").shuffle(order)
        size = self.batch * POOL
        for pool in range(start // POOL, math.ceil(len(order) / size)):
            chance = random.Random(f"{self.seed}/{epoch}/{pool}")
            places = order[pool * size : (pool + 1) * size]
            yield from self._pool(places, chance)[max(0, start - pool * POOL) :]

    def _pool(self, places: Sequence[int], chance: random.Random) -> list[list[Made]]:
        made = self.make(places, chance)
        made.sort(key=self.key)
        cut = [made[at : at + self.batch] for at in range(0, len(made), self.batch)]
        chance.shuffle(cut)
        return cut
