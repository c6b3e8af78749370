"""The training of the encoder: resumed, it gives the same weights, bit for bit, as if it never stopped.

No dropout; the rest of what that takes stands in `models.training.loop`.
"""

from collections.abc import Sequence
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
from models.training import judging, loop
from models.training.checkpoints import Standing
from models.training.examples import Example
from models.training.loop import CHECKPOINT_STEPS, Watch
from models.training.losses import losses, total
from models.training.options import EncoderOptions
from models.training.schedule import Batched, Schedule


class Trainer:
    """One run: a network on a base, in a folder."""

    def __init__(
        self,
        found: Found,
        folder: Path,
        options: EncoderOptions,
        placement: Placement | None = None,
        start: Path | None = None,
    ) -> None:
        """`placement` decides speed and precision; `start` is an adapter on the same base to go on from."""
        placement = placement or Placement()
        placement.apply_threads()
        self._found, self._folder, self._options = found, folder, options
        self._device, self._autocast = precision(placement)
        self._dev: Sequence[Dialogue] = ()
        self.featurizer = featurizer_of(found, options.tokens)
        bare = encoder(found.folder)
        if self._device.type == "cpu":  # torch's fused attention is slow backwards there: a third of the step
            bare.set_attn_implementation("eager")
        self.network = adapter.fresh(bare, options.seed)
        if start is not None:
            adapter.apply(self.network, adapter.read_config(start), start, found)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)  # of LoRA's first weights
            adapter.freeze(self.network, options.lora)
        self.network.to(self._device)
        self.optimizer = torch.optim.AdamW(_groups(self.network, options), lr=options.rate)
        self._config = AdapterConfig(
            base=found.name,
            base_revision=found.revision,
            tokens=options.tokens,
            sides=True,
            lora=options.lora,
        )

    def run(
        self,
        examples: Sequence[Example],
        dev: Sequence[Dialogue],
        watch: Watch = lambda step: None,
        every: int = CHECKPOINT_STEPS,
    ) -> Standing:
        """Train to the end, from the folder's checkpoint if it has one; the best epoch is saved there."""
        self._dev = dev
        return loop.run(self, Schedule(examples, self.featurizer, self._options), self._folder, watch, every)

    def weights(self) -> dict[str, Tensor]:
        """Those that training changes, by name."""
        return adapter.trainable(self.network)

    def learn(self, batch: Batched, step: int, steps: int) -> dict[str, float]:
        """One step of the optimizer; the losses, by head and together."""
        features, labels = batch
        for group in self.optimizer.param_groups:
            group["lr"] = group["share"] * rate(step, steps, self._options)
        shown = collate(features, self.featurizer.pad).to(self._device)
        found = losses(self.network(shown, self._autocast), features, labels)
        loss = total(found, self._options.weights)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(self.weights().values(), self._options.clip)
        self.optimizer.step()
        return {"loss": loss.item()} | {name: value.item() for name, value in found.items()}

    def examples(self, batch: Batched) -> int:
        """How many examples a batch holds."""
        return len(batch[0])

    def judged(self) -> dict[str, float]:
        """The figures on dev; empty where there is no dev."""
        return judging.judge(self._dev, EncoderEngine(self._loaded())).values if self._dev else {}

    def keep(self) -> None:
        """Save the adapter."""
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
    return options.rate * loop.share(step, steps, options.warmup)


def _groups(network: StanceNetwork, options: EncoderOptions) -> list[dict[str, object]]:
    """Matrices decay, biases and norms do not; `share` is the group's part of the rate."""
    groups = []
    for of_encoder, share in ((True, 1.0), (False, options.heads)):
        changed: list[Tensor] = [
            values
            for name, values in adapter.trainable(network).items()
            if name.startswith("encoder.") is of_encoder
        ]
        for decay, matrices in ((options.decay, True), (0.0, False)):
            params = [values for values in changed if (values.dim() > 1) is matrices]
            groups.append({"params": params, "weight_decay": decay, "share": share})
    return groups
