"""Stages 2 and 3: LoRA on a causal language model, taught what the generative engine is asked.

Resumed, a run gives the same weights as if it never stopped (`models.training.loop`); dropout's chances are
a function of seed and step.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from peft.helpers import disable_input_dtype_casting
from torch import Tensor, nn

from models.datasets.dialogue import Dialogue
from models.language.backbone import Placement
from models.language.generative import GenerativeEngine, Limits
from models.language.local_chat import LocalChat
from models.language.weights import Found
from models.reasoning.prompts import INSTRUCTIONS
from models.reasoning.room import Room, within
from models.training import judging, loop, lora, quantization
from models.training.checkpoints import Standing
from models.training.lessons import Lesson
from models.training.loop import CHECKPOINT_STEPS, Watch
from models.training.passes import answers
from models.training.samples import Sample, Sampler
from models.training.schedule import Course
from models.training.stages import TuningOptions

Microbatches = list[list[Sample]]


class Tuner:
    """One run: LoRA on a backbone, in a folder."""

    def __init__(
        self,
        found: Found,
        folder: Path,
        options: TuningOptions,
        placement: Placement | None = None,
        start: Path | None = None,
    ) -> None:
        """`start` is the adapter to go on from: stage 3 begins where stage 2 ended. Raises InvalidSetting."""
        quantization.check(options.quantization, options.optimizer)
        self._found, self._folder, self._options = found, folder, options
        self._backbone = quantization.loaded(found, options.quantization, placement or Placement())
        self.network: nn.Module = lora.adapted(self._backbone, options.lora, options.seed, start)
        # On a GPU memory is short and arithmetic is not; on a CPU it is the other way round.
        self._checkpointing = self._backbone.device.type == "cuda"
        if self._checkpointing:
            self._backbone.model.gradient_checkpointing_enable({"use_reentrant": False})
        self._half = quantization.halved(self._backbone, options.quantization)
        self.optimizer = quantization.optimizer_of(
            options.optimizer, list(self.weights().values()), options.rate, options.decay
        )
        self.sampler = Sampler(self._backbone, options.budget)
        self._dev: Sequence[Dialogue] = ()

    def run(
        self,
        lessons: Sequence[Lesson],
        dev: Sequence[Dialogue],
        watch: Watch = lambda step: None,
        every: int = CHECKPOINT_STEPS,
    ) -> Standing:
        """Train to the end, from the folder's checkpoint if it has one; the best epoch is saved there."""
        self._dev = dev[: self._options.judged]
        return loop.run(self, Course(lessons, self.sampler, self._options), self._folder, watch, every)

    @property
    def room(self) -> Room:
        """What the roles are shown on this model. Raises ValueError where its context is too short."""
        chat = LocalChat(self._backbone)
        return within(self._options.budget, chat.room(INSTRUCTIONS), chat.count)

    def weights(self) -> dict[str, Tensor]:
        """LoRA's."""
        return lora.trainable(self.network)

    def learn(self, batch: Microbatches, step: int, steps: int) -> dict[str, float]:
        """One step of the optimizer; the mean loss of each kind of answer, and of a sample all together."""
        loop.pace(self.optimizer, self._options, step, steps)
        torch.manual_seed(self._options.seed * 1_000_003 + step)  # of dropout
        self.network.train()
        self.optimizer.zero_grad(set_to_none=True)
        seen: dict[str, list[float]] = {}
        count = self.examples(batch)
        loss = sum(self._backward(micro, count, seen) for micro in batch)
        torch.nn.utils.clip_grad_norm_(self.weights().values(), self._options.clip)
        self.optimizer.step()
        return {"loss": loss} | {name: sum(values) / len(values) for name, values in seen.items()}

    def examples(self, batch: Microbatches) -> int:
        """How many samples a step holds."""
        return sum(map(len, batch))

    def judged(self) -> dict[str, float]:
        """The figures on dev, read freely as the engine reads; empty where there is no dev."""
        if not self._dev:
            return {}
        self.network.eval()
        self._backbone.untrained = False  # so that the engine takes out no priors
        engine = GenerativeEngine(self._backbone, Limits(self._options.budget))
        return judging.judge(self._dev, engine).values

    def keep(self) -> None:
        """Save the adapter."""
        lora.save(self.network, self._found.name, self._folder)

    @contextmanager
    def _precision(self) -> Iterator[None]:
        """bfloat16 where it is fast. Autocast casts what LoRA is given: peft would only widen it first."""
        half = self._half
        narrow = torch.autocast(self._backbone.device.type, torch.bfloat16, enabled=half)
        with narrow, disable_input_dtype_casting(self.network, half):
            yield

    def _backward(self, micro: Sequence[Sample], count: int, seen: dict[str, list[float]]) -> float:
        return sum(part for part in self._parts(micro, count, seen))

    def _parts(self, micro: Sequence[Sample], count: int, seen: dict[str, list[float]]) -> Iterator[float]:
        """Each pass' part of the step's loss, gone backwards through before the next pass is read."""
        with self._precision():
            passes = answers(self.sampler, micro, shared=not self._checkpointing)
            for found in passes:
                weights = self._options.weights
                parts = [getattr(weights, one.name) * one.losses.sum() for one in found]
                if not parts:
                    continue  # nobody labelled any of it
                loss = torch.stack(parts).sum() / count
                loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
                for one in found:
                    seen.setdefault(one.name, []).extend(one.losses.detach().tolist())
                yield loss.item()
