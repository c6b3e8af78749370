"""Stage 1: the projector learns to say what a media vector shows; all else is frozen (StanceFlip 4.3, C.4).

X is a prefix prompt with the projected vector in its place, Y the caption; the loss is equation (8) over the
caption's tokens alone. ImageBind's weights are not ours to ship, so vectors come from a folder.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from models.language import projector
from models.language.backbone import Placement
from models.language.prefix import padded
from models.language.projector import MEDIA, Projector, ProjectorConfig, spliced
from models.language.weights import Found
from models.training import loop, quantization
from models.training.checkpoints import Standing
from models.training.loop import CHECKPOINT_STEPS, Watch
from models.training.order import Order
from models.training.pairs import Pair
from models.training.passes import targets, words_missed
from models.training.samples import Written, end_of
from models.training.stages import AlignmentOptions

INSTRUCTION = "You describe what an image, sound or video shows, in one sentence."
SHOWN = "\nWhat does it show?"

Step = list[list[Pair]]


class Aligner:
    """One run: a projector beside a frozen backbone, in a folder."""

    def __init__(
        self,
        found: Found,
        folder: Path,
        options: AlignmentOptions,
        inputs: int,
        placement: Placement | None = None,
    ) -> None:
        """`inputs` is the length of a media vector. Raises InvalidSetting."""
        quantization.check(options.quantization, options.optimizer)
        self._folder, self._options = folder, options
        self._backbone = quantization.loaded(found, options.quantization, placement or Placement())
        config = ProjectorConfig(
            kind=options.projector,
            inputs=inputs,
            hidden=int(self._backbone.model.config.hidden_size),
            base_revision=found.revision,
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            self.network = Projector(config).to(self._backbone.device)
        self._half = quantization.halved(self._backbone, options.quantization)
        self.optimizer = quantization.optimizer_of(
            options.optimizer, list(self.network.parameters()), options.rate, options.decay
        )

    def run(
        self, pairs: Sequence[Pair], watch: Watch = lambda step: None, every: int = CHECKPOINT_STEPS
    ) -> Standing:
        """Train to the end, from the folder's checkpoint if it has one; the last epoch's projector stays."""
        return loop.run(self, _order(pairs, self._options), self._folder, watch, every)

    def weights(self) -> dict[str, Tensor]:
        """The projector's."""
        return dict(self.network.named_parameters())

    def learn(self, batch: Step, step: int, steps: int) -> dict[str, float]:
        """One step of the optimizer; its loss, a mean over pairs."""
        loop.pace(self.optimizer, self._options, step, steps)
        self.optimizer.zero_grad(set_to_none=True)
        loss = 0.0
        for micro in batch:
            part = self.losses(micro).sum() / self.examples(batch)
            part.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            loss += part.item()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self._options.clip)
        self.optimizer.step()
        return {"loss": loss}

    def losses(self, pairs: Sequence[Pair]) -> Tensor:
        """[pairs]: the mean loss of each caption's tokens, given its vector."""
        backbone = self._backbone
        samples = [self._written(pair) for pair in pairs]
        ids, real = padded([[*one.body, *one.answer[:-1]] for one in samples], backbone.device)
        target = targets(samples, backbone.device)
        vectors = torch.from_numpy(np.stack([pair.numbers for pair in pairs])).to(backbone.device)
        with torch.autocast(backbone.device.type, torch.bfloat16, enabled=self._half):
            shown = spliced(backbone.model.get_input_embeddings(), ids, self.network(vectors))
            logits = backbone.model(
                inputs_embeds=shown,
                attention_mask=real.long(),
                position_ids=(real.cumsum(dim=1) - 1).clamp(min=0),
                logits_to_keep=target.shape[1],
                use_cache=False,
            ).logits.float()
        return words_missed(logits, target)

    def examples(self, batch: Step) -> int:
        """How many pairs a step holds."""
        return sum(map(len, batch))

    def judged(self) -> dict[str, float]:
        """Nothing: captions have no figures of their own here."""
        return {}

    def keep(self) -> None:
        """Save the projector."""
        projector.save(self.network, self._folder)

    def _written(self, pair: Pair) -> Written:
        backbone = self._backbone
        head, tail = backbone.frame(INSTRUCTION)
        body = [*head, MEDIA, *backbone.encode(SHOWN), *tail]
        return Written(INSTRUCTION, body, [*backbone.encode(pair.caption), end_of(backbone)])


def _order(pairs: Sequence[Pair], options: AlignmentOptions) -> Order[Pair]:
    """The pairs of every step."""
    return Order(
        len(pairs),
        options.batch,
        options.epochs,
        options.seed,
        lambda places, _: [pairs[place] for place in places],
        lambda pair: len(pair.caption),
        options.accumulation,
    )
