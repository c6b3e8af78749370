"""What a training run is made of; stored in its folder, so that a resumed run is the same run."""

from typing import Annotated, Literal

import msgspec

from models.encoder.adapter import Lora
from models.encoder.features import TOKENS

Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Positive = Annotated[float, msgspec.Meta(gt=0.0)]
Weight = Annotated[float, msgspec.Meta(ge=0.0)]
Shape = Literal["linear", "cosine"]  # of the learning rate's fall

RATE, LORA_RATE = 7e-5, 5e-4  # LoRA starts from nothing and moves far fewer weights


class Weights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each head's loss counts; trigger and pointer are learned on flips alone."""

    expressed: Weight = 1.0
    after: Weight = 0.5
    emotion: Weight = 0.2
    sentiment: Weight = 0.2
    relevance: Weight = 0.1
    trigger: Weight = 0.3
    pointer: Weight = 0.3
    sides: Weight = 0.5


class EncoderOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that decides which weights come out, but for the machine and the data."""

    epochs: Count = 3
    batch: Count = 12  # examples
    rate: Positive = RATE  # of AdamW, at its peak
    heads: Positive = 1.0  # the heads' rate, in multiples of the encoder's
    warmup: Share = 0.06  # of all steps
    decay: Weight = 0.01  # of matrices
    clip: Positive = 1.0  # the gradient's norm, at most
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    drawn: Share = 0.25  # examples whose state is drawn at random, else the encoder copies it
    foreign: Share = 0.05  # examples put beside another dialogue's proposition, to teach relevance
    turned: Share = 0.15  # beside the contrary of their proposition, to teach sides
    bare: Share = 0.1  # beside their proposition without its frame
    declared: Share = 0.05  # with a plain declaration of our own words in the turn's place
    thinned: Share = 0.1  # earlier turns left out
    misread: Share = 0.5  # earlier turns whose side is drawn at random, two in three of them wrongly
    unread: Share = 0.15  # examples whose earlier turns come without sides
    masked: Share = 0.08  # words hidden, against learning dialogues by heart
    tokens: Annotated[int, msgspec.Meta(ge=32, le=512)] = TOKENS
    lora: Lora | None = None  # None: every layer, the word embeddings as they are
    start: str | None = None  # fingerprint of the adapter that the run goes on from; None: fresh heads
    weights: Weights = Weights()
