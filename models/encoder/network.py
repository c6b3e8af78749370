"""The encoder with its heads. What pools decides: one mean over everything stayed near the majority class.

Pooled are the means over the whole, over the new turn and over the proposition, and the first token, side
by side under one tanh layer. A pointer scores each part of each turn shown (a text, a media item) as what
moved the holder; the kind of trigger is read from what the pointer points at.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from models.encoder.batching import POOLED, Batch
from models.encoder.features import SHOWN_TURNS, Role
from tracker.stances import Emotion, Expressed, Sentiment, Stance, TriggerKind

EXPRESSED, AFTER = tuple(Expressed), tuple(Stance)
EMOTIONS, SENTIMENTS, TRIGGERS = tuple(Emotion), tuple(Sentiment), tuple(TriggerKind)
FAR = -1e9  # the score of a part that is not there


class Outputs(NamedTuple):
    """Logits in float32, in the order of the enums above; `pointer` [B, P] over parts, `relevance` [B].

    `sides` [B, P, 4] says of each part what its turn expresses: learned beside the rest, since one pass then
    teaches as many sides as turns are shown (a third of those that stand beside them are wrong, so that to
    copy does not do), and never served.
    """

    expressed: Tensor
    after: Tensor
    emotion: Tensor
    sentiment: Tensor
    relevance: Tensor
    trigger: Tensor
    pointer: Tensor
    sides: Tensor


class StanceNetwork(nn.Module):
    """An encoder, a pooling layer and the heads; always in eval mode, since dropout only harmed."""

    def __init__(self, encoder: PreTrainedModel) -> None:
        super().__init__()
        width = int(encoder.config.hidden_size)
        self.encoder = encoder
        self.typed = getattr(encoder.config, "type_vocab_size", 0) >= 2
        if not self.typed:  # an encoder without token types learns a mark for the new turn
            self.mark = nn.Parameter(torch.zeros(width))
        self.pool = nn.Linear((POOLED + 1) * width, width)
        self.expressed = nn.Linear(width, len(EXPRESSED))
        self.after = nn.Linear(width, len(AFTER))
        self.emotion = nn.Linear(width, len(EMOTIONS))
        self.sentiment = nn.Linear(width, len(SENTIMENTS))
        self.relevance = nn.Linear(width, 1)
        self.trigger = nn.Linear(2 * width, len(TRIGGERS))
        self.sides = nn.Linear(width, len(EXPRESSED))
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.role, self.place = nn.Embedding(len(Role), width), nn.Embedding(SHOWN_TURNS, width)
        for table in (self.role, self.place):
            nn.init.normal_(table.weight, std=0.02)
        self.eval()

    def forward(self, batch: Batch, autocast: torch.dtype | None = None) -> Outputs:
        """All that is read of each example; `autocast` is the encoder's precision, heads stay in float32."""
        device = batch.ids.device.type
        with torch.autocast(device, dtype=autocast or torch.bfloat16, enabled=autocast is not None):
            hidden = self._hidden(batch).float()
        with torch.autocast(device, enabled=False):
            return self._read(hidden, batch)

    def _hidden(self, batch: Batch) -> Tensor:
        """[B, T, width]."""
        if self.typed:
            shown = {"input_ids": batch.ids, "token_type_ids": batch.types}
        else:
            words = self.encoder.get_input_embeddings()(batch.ids)
            shown = {"inputs_embeds": words + (batch.types[..., None] * self.mark).to(words.dtype)}
        hidden: Tensor = self.encoder(attention_mask=batch.mask, **shown).last_hidden_state
        return hidden

    def _read(self, hidden: Tensor, batch: Batch) -> Outputs:
        means = torch.cat([batch.regions @ hidden, hidden[:, :1]], dim=1)
        pooled = torch.tanh(self.pool(means.flatten(1)))
        parts = batch.parts @ hidden
        pointer = self._pointer(pooled, parts, batch)
        pointed = (pointer.softmax(dim=-1)[:, None] @ parts)[:, 0]
        return Outputs(
            expressed=self.expressed(pooled),
            after=self.after(pooled),
            emotion=self.emotion(pooled),
            sentiment=self.sentiment(pooled),
            relevance=self.relevance(pooled)[:, 0],
            trigger=self.trigger(torch.cat([pooled, pointed], dim=-1)),
            pointer=pointer,
            sides=self.sides(parts),
        )

    def _pointer(self, pooled: Tensor, parts: Tensor, batch: Batch) -> Tensor:
        keys = self.key(parts) + self.role(batch.roles) + self.place(batch.places)
        query = self.query(pooled)
        scores: Tensor = (keys @ query[..., None])[..., 0] * query.shape[-1] ** -0.5
        return scores.masked_fill(~batch.real, FAR)
