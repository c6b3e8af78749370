"""The three stages of ConStaFF's training (StanceFlip 4.3, Appendix C): settings for 7B and small models.

Table 8 says nothing of weight decay (0, as Hugging Face's trainer has it), of seeds, or of how tasks weigh.
Its batch is a device's: the authors had ten of them (Appendix C.1), a run here is on one.
"""

from typing import Annotated, Literal

import msgspec

from models.training.options import Count, Positive, Shape, Share, Weight

Quantization = Literal["none", "fp16", "int8", "nf4"]
OptimizerName = Literal["adamw", "paged_adamw_32bit"]
Form = Literal["served", "dialogue"]

LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")  # Appendix C.2
BUDGET = 640  # tokens of a request in a prompt: what engine `generative` shows by default


class LoraOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Equation (6), on all linear layers."""

    rank: Count = 16
    alpha: Count = 32
    dropout: Share = 0.05


class TaskWeights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each answer's loss counts: a slot's by its cue, and the mean over written words' tokens."""

    position: Weight = 1.0
    emotion: Weight = 0.3
    sentiment: Weight = 0.3
    cause: Weight = 1.0
    source: Weight = 1.0
    answer: Weight = 1.0  # a label that a role chooses
    words: Weight = 1.0


class StageOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column of Table 8; a step learns from `batch` times `accumulation` examples."""

    quantization: Quantization
    rate: Positive
    shape: Shape
    warmup: Share
    batch: Count
    accumulation: Count
    clip: Positive
    epochs: Count
    optimizer: OptimizerName = "adamw"
    decay: Weight = 0.0
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0


class AlignmentOptions(StageOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Stage 1: the projector alone learns, from media and their captions."""

    projector: Literal["linear", "mlp"] = "mlp"  # section 4.3 says linear, Appendix C.2 equation (7)


class TuningOptions(StageOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stages 2 and 3 share: LoRA, what is taught, and how good each epoch is.

    Form `served` teaches what is asked when a stream is read, `dialogue` the paper's prompts over a whole
    dialogue.
    """

    form: Form = "served"
    lora: LoraOptions = LoraOptions()
    weights: TaskWeights = TaskWeights()
    budget: Count = BUDGET
    longest: Count = 2048  # tokens of a dialogue, or what a role is asked, and its answer; more is left out
    judged: Annotated[int, msgspec.Meta(ge=0)] = 60  # dev dialogues read freely after each epoch


class ReasoningOptions(TuningOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Stage 2, varied by chance in form `served`."""

    drawn: Share = 0.25  # turns whose state is drawn at random, else the model copies it
    foreign: Share = 0.05  # turns put beside another dialogue's proposition


class ReflectionOptions(TuningOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Stage 3: Corrupt-and-Correct; a sample is kept where a uniform draw is above `above` (B.2.2)."""

    above: Share = 0.4
    rehearsed: Share = 1.0  # of what stage 2 taught, in form `served`: the initial generation of B.2.1


class Stages(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of all three."""

    alignment: AlignmentOptions
    reasoning: ReasoningOptions
    reflection: ReflectionOptions


# Table 8, for 7B backbones.
PAPER = Stages(
    alignment=AlignmentOptions(
        quantization="fp16", rate=2e-5, shape="cosine", warmup=0.0,
        batch=4, accumulation=1, clip=1.0, epochs=3
    ),
    reasoning=ReasoningOptions(
        quantization="int8", rate=1e-4, shape="linear", warmup=0.03,
        batch=1, accumulation=32, clip=1.0, epochs=2
    ),
    reflection=ReflectionOptions(
        quantization="nf4", rate=5e-5, shape="linear", warmup=0.03,
        batch=4, accumulation=16, clip=0.3, epochs=2,
        optimizer="paged_adamw_32bit",
    ),
)  # fmt: skip

# For SmolLM2-135M on a few cores: dropout costs a pass over every activation there, and the set is small.
_LORA = LoraOptions(dropout=0.0)
SMALL = Stages(
    alignment=AlignmentOptions(
        quantization="none", rate=1e-3, shape="cosine", warmup=0.03,
        batch=8, accumulation=1, clip=1.0, epochs=3
    ),
    reasoning=ReasoningOptions(
        quantization="none", rate=3e-4, shape="linear", warmup=0.03,
        batch=8, accumulation=2, clip=1.0, epochs=2,
        lora=_LORA,
    ),
    reflection=ReflectionOptions(
        quantization="none", rate=1e-4, shape="linear", warmup=0.03,
        batch=4, accumulation=4, clip=0.3, epochs=1,
        lora=_LORA, longest=1024, rehearsed=0.2,
    ),
)  # fmt: skip
CONFIGS = {"small": SMALL, "paper": PAPER}
