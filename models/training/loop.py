"""The loop of every training here: resumed, it gives the same weights as if it never stopped.

What it takes for that: the order of batches and every chance a function of the seed, a learning rate of the
step alone, weights and optimizer in the checkpoint. Threads and device must stay the same.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from torch import Tensor, nn
from torch.optim import Optimizer

from models.training import checkpoints, judging
from models.training.checkpoints import Standing
from models.training.journal import Journal, Means
from models.training.options import Shape
from models.training.stages import StageOptions

CHECKPOINT_STEPS, JOURNAL_STEPS = 200, 20


@dataclass(frozen=True)
class Step:
    """What a step did, for whoever watches."""

    step: int
    steps: int
    loss: float


Watch = Callable[[Step], None]
Batch = TypeVar("Batch")
Batch_contra = TypeVar("Batch_contra", contravariant=True)
Batch_co = TypeVar("Batch_co", covariant=True)


class Plan(Protocol[Batch_co]):
    """What is learned from, by step."""

    @property
    def steps(self) -> int:
        """Of the whole run."""
        ...

    @property
    def epoch_steps(self) -> int:
        """Of one epoch."""
        ...

    def batches(self, start: int) -> Iterator[Batch_co]:
        """What each step from `start` on learns from."""
        ...


class Learner(Protocol[Batch_contra]):
    """What learns."""

    @property
    def network(self) -> nn.Module:
        """Whose weights a checkpoint restores."""
        ...

    @property
    def optimizer(self) -> Optimizer:
        """What moves them."""
        ...

    def weights(self) -> dict[str, Tensor]:
        """Those that training changes, by their names in the network."""
        ...

    def learn(self, batch: Batch_contra, step: int, steps: int) -> dict[str, float]:
        """One step of the optimizer; its figures, `loss` among them."""
        ...

    def examples(self, batch: Batch_contra) -> int:
        """How many examples a batch holds."""
        ...

    def judged(self) -> dict[str, float]:
        """The figures on dev; empty where there is no dev."""
        ...

    def keep(self) -> None:
        """Save what is to be served."""
        ...


def run(
    learner: Learner[Batch],
    plan: Plan[Batch],
    folder: Path,
    watch: Watch = lambda step: None,
    every: int = CHECKPOINT_STEPS,
) -> Standing:
    """Train to the end, from the folder's checkpoint if it has one; the best epoch is kept."""
    standing = checkpoints.restore(folder, learner.network, learner.optimizer)
    journal, means = Journal(folder, standing.step), Means()
    for batch in plan.batches(standing.step):
        began = time.perf_counter()
        found = learner.learn(batch, standing.step, plan.steps)
        standing.step += 1
        seconds = (time.perf_counter() - began) / learner.examples(batch)
        means.add(found | {"seconds_an_example": seconds})
        ended = standing.step % plan.epoch_steps == 0
        if standing.step % JOURNAL_STEPS == 0:
            journal.write("train", standing.step, **means.take())
        if ended:
            _judge(learner, standing, standing.step // plan.epoch_steps, journal)
        if ended or standing.step % every == 0:
            checkpoints.save(folder, standing, learner.weights(), learner.optimizer)
        watch(Step(standing.step, plan.steps, found["loss"]))
    return standing


def share(step: int, steps: int, warmup: float, shape: Shape = "linear") -> float:
    """A step's part of the peak rate: up in a line over the warmup, then down in a line or half a cosine."""
    warm = max(1, round(steps * warmup))
    if step < warm:
        return min(1.0, (step + 1) / warm)
    left = min(1.0, (steps - step) / max(1, steps - warm))
    return left if shape == "linear" else 0.5 * (1.0 - math.cos(math.pi * left))


def pace(optimizer: Optimizer, options: StageOptions, step: int, steps: int) -> None:
    """Set a stage's rate for a step."""
    for group in optimizer.param_groups:
        group["lr"] = options.rate * share(step, steps, options.warmup, options.shape)


def _judge(learner: Learner[Batch], standing: Standing, epoch: int, journal: Journal) -> None:
    """The epoch's figures on dev, and what it learned kept where none was as good; without dev the last's.

    Of equal epochs the first is kept. Undefined counts as 0, so that the first always leaves something.
    """
    figures = learner.judged()
    if figures:
        journal.write("dev", standing.step, epoch=epoch, **figures)
    found = figures.get(judging.CHOOSING, float(epoch))
    found = 0.0 if math.isnan(found) else found
    if found > standing.best:
        standing.best, standing.best_epoch = found, epoch
        learner.keep()
