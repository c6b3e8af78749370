"""The training of the encoder: resumed, it gives the same weights, bit for bit, as if it never stopped.

What it takes for that: no dropout, the order of examples and every chance a function of the seed, a learning
rate of the step alone, weights and optimizer in the checkpoint. Threads and device must stay the same.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from models.datasets.dialogue import Dialogue
from models.encoder import adapter
from models.encoder.adapter import AdapterConfig
from models.encoder.batching import collate
from models.encoder.calibration import Calibration
from models.encoder.engine import EncoderEngine
from models.encoder.loading import Loaded, encoder, featurizer_of, precision
from models.encoder.network import StanceNetwork
from models.language.backbone import Placement
from models.language.weights import Found
from models.training import checkpoints, judging
from models.training.checkpoints import Standing
from models.training.examples import Example
from models.training.journal import Journal, Means
from models.training.losses import losses, total
from models.training.options import EncoderOptions
from models.training.schedule import Batched, Schedule

CHECKPOINT_STEPS, JOURNAL_STEPS = 200, 20


@dataclass(frozen=True)
class Step:
    """What a step did, for whoever watches."""

    step: int
    steps: int
    loss: float


Watch = Callable[[Step], None]


class Trainer:
    """One run: a network on a base, in a folder."""

    def __init__(
        self, found: Found, folder: Path, options: EncoderOptions, placement: Placement | None = None
    ) -> None:
        """`placement` decides speed and precision; a CPU that has bfloat16 may be told to use it."""
        placement = placement or Placement()
        placement.apply_threads()
        self._found, self._folder, self._options = found, folder, options
        self._device, self._autocast = precision(placement)
        self.featurizer = featurizer_of(found, options.tokens)
        bare = encoder(found.folder)
        if self._device.type == "cpu":  # torch's fused attention is slow backwards there: a third of the step
            bare.set_attn_implementation("eager")
        self.network = adapter.fresh(bare, options.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)  # of LoRA's first weights
            adapter.freeze(self.network, options.lora)
        self.network.to(self._device)
        self._optimizer = torch.optim.AdamW(_groups(self.network, options.decay), lr=options.rate)
        self._config = AdapterConfig(
            base=found.name, base_revision=found.revision, tokens=options.tokens, lora=options.lora
        )

    def run(
        self,
        examples: Sequence[Example],
        dev: Sequence[Dialogue],
        watch: Watch = lambda step: None,
        every: int = CHECKPOINT_STEPS,
    ) -> Standing:
        """Train to the end, from the folder's checkpoint if it has one; the best epoch is saved there."""
        schedule = Schedule(examples, self.featurizer, self._options)
        standing = checkpoints.restore(self._folder, self.network, self._optimizer)
        journal, means = Journal(self._folder, standing.step), Means()
        for batch in schedule.batches(standing.step):
            began = time.perf_counter()
            found = self._step(batch, standing.step, schedule.steps)
            standing.step += 1
            means.add(found | {"seconds_an_example": (time.perf_counter() - began) / len(batch[0])})
            if standing.step % JOURNAL_STEPS == 0:
                journal.write("train", standing.step, **means.take())
            if standing.step % schedule.epoch_steps == 0:
                self._judge(dev, standing, standing.step // schedule.epoch_steps, journal)
            if standing.step % every == 0 or standing.step % schedule.epoch_steps == 0:
                weights = adapter.trainable(self.network)
                checkpoints.save(self._folder, standing, weights, self._optimizer)
            watch(Step(standing.step, schedule.steps, found["loss"]))
        return standing

    def _step(self, batch: Batched, step: int, steps: int) -> dict[str, float]:
        features, labels = batch
        for group in self._optimizer.param_groups:
            group["lr"] = rate(step, steps, self._options)
        shown = collate(features, self.featurizer.pad).to(self._device)
        found = losses(self.network(shown, self._autocast), features, labels)
        loss = total(found, self._options.weights)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(adapter.trainable(self.network).values(), self._options.clip)
        self._optimizer.step()
        return {"loss": loss.item()} | {name: value.item() for name, value in found.items()}

    def _judge(self, dev: Sequence[Dialogue], standing: Standing, epoch: int, journal: Journal) -> None:
        """The epoch's figures on dev, and its adapter where none was better; without dev the last one's."""
        figures = judging.judge(dev, EncoderEngine(self._loaded())) if dev else None
        if figures is not None:
            journal.write("dev", standing.step, epoch=epoch, **figures.values)
        found = figures[judging.CHOOSING] if figures is not None else float(epoch)
        if found > standing.best:
            standing.best, standing.best_epoch = found, epoch
            adapter.save(self.network, self._config, self._folder)

    def _loaded(self) -> Loaded:
        return Loaded(
            self.network,
            self.featurizer,
            Calibration(),
            self._found.name,
            "training",
            False,
            self._device,
            self._autocast,
        )


def rate(step: int, steps: int, options: EncoderOptions) -> float:
    """The learning rate: up in a line over the warmup, then down in a line to 0."""
    warm = max(1, round(steps * options.warmup))
    share = (step + 1) / warm if step < warm else (steps - step) / max(1, steps - warm)
    return options.rate * min(1.0, share)


def _groups(network: StanceNetwork, decay: float) -> list[dict[str, object]]:
    """Matrices decay; biases and norms do not."""
    changed: list[Tensor] = list(adapter.trainable(network).values())
    matrices = [values for values in changed if values.dim() > 1]
    return [
        {"params": matrices, "weight_decay": decay},
        {"params": [values for values in changed if values.dim() <= 1], "weight_decay": 0.0},
    ]
