"""Which epoch is kept, whatever its figures are; resuming is the trainers' own tests'."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from models.training import journal, judging, loop


class Plan:
    """A step an epoch."""

    epoch_steps = 1

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def batches(self, start: int) -> Iterator[int]:
        return iter(range(start, self.steps))


class Learner:
    """Learns nothing, and is as good at each epoch as it is told."""

    def __init__(self, found: Sequence[float | None]) -> None:
        self.network: nn.Module = nn.Linear(1, 1)
        self.optimizer = torch.optim.SGD(self.network.parameters())
        self._found, self._epoch = found, 0
        self.kept: list[int] = []

    def weights(self) -> dict[str, Tensor]:
        return dict(self.network.named_parameters())

    def learn(self, batch: int, step: int, steps: int) -> dict[str, float]:
        self._epoch = step + 1
        return {"loss": 0.0}

    def examples(self, batch: int) -> int:
        return 1

    def judged(self) -> dict[str, float]:
        found = self._found[self._epoch - 1]
        return {} if found is None else {judging.CHOOSING: found}

    def keep(self) -> None:
        self.kept.append(self._epoch)


@pytest.mark.parametrize(("found", "kept"), [
    ([0.1, 0.3, 0.2], [1, 2]),
    ([0.3, 0.3], [1]),  # of equals the first
    ([0.0, 0.0, 0.0], [1]),
    ([0.0, 0.2], [1, 2]),
    ([math.nan, math.nan], [1]),  # never a folder with nothing to be served
    ([math.nan, 0.2, math.nan], [1, 2]),
    ([0.2, math.nan, 0.1], [1]),
    ([None, None, None], [1, 2, 3]),  # no dev: the last
])  # fmt: skip
def test_the_first_of_the_best_epochs_is_kept(
    found: list[float | None], kept: list[int], tmp_path: Path
) -> None:
    learner = Learner(found)
    standing = loop.run(learner, Plan(len(found)), tmp_path)
    assert learner.kept == kept
    assert standing.best_epoch == kept[-1]
    told = [line["epoch"] for line in journal.read(tmp_path, "dev")]
    assert told == [epoch for epoch, one in enumerate(found, 1) if one is not None]


def test_a_resumed_run_knows_the_best_epoch_before_it(tmp_path: Path) -> None:
    first = Learner([0.3])
    loop.run(first, Plan(1), tmp_path)
    second = Learner([0.3, 0.1, 0.4])
    standing = loop.run(second, Plan(3), tmp_path)
    assert (first.kept, second.kept, standing.best_epoch) == ([1], [3], 3)
