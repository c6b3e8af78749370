"""Embeddings for the judge that works offline: multilingual-e5-small, mean-pooled, "query: " before a text.

The threshold was chosen on 120 dialogues of the open dataset's dev part. Pairs that are the same: a
proposition with and without the form around it (64), a rationale and its own longest clause (87). Pairs that
are not: rationales of two turns of one dialogue (183), propositions of two dialogues in one language (64). At
0.92 all propositions and 93 of 100 rationales that are the same pass, and of those that are not none and 4 of
100; at 0.90 those are 17 of 100. A rewording that shares no words lies lower (a rationale and its turn's own
text: 0.87), so that the judge is strict.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from models.evaluation.judge import EmbeddingJudge

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

THRESHOLD = 0.92
PREFIX = "query: "  # what e5 was trained with where both sides are alike
TOKENS = 512  # a text, at most
BATCH_TOKENS = 4096


class Embedder:
    """Texts as unit vectors, in float32 on any device; the weights are loaded for the first texts."""

    def __init__(self, cache: Path | None = None, device: str = "auto", threads: int | None = None) -> None:
        """`cache`: the folder of converted weights."""
        self._cache, self._device, self._threads = cache, device, threads
        self._loaded: _Loaded | None = None

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, dimensions). Raises WeightsUnavailable or InvalidSetting at the first call."""
        if self._loaded is None:
            self._loaded = _Loaded(self._cache, self._device, self._threads)
        return self._loaded.embedded(texts)


class _Loaded:
    """The encoder and its tokenizer."""

    def __init__(self, cache: Path | None, device: str, threads: int | None) -> None:
        # Imported late: torch takes seconds, and most evaluations judge without it.
        from transformers import AutoTokenizer  # noqa: PLC0415

        from models.encoder.loading import encoder  # noqa: PLC0415
        from models.encoder.weights import base  # noqa: PLC0415
        from models.language.backbone import Placement  # noqa: PLC0415

        placement = Placement(device, "float32", threads)
        placement.apply_threads()
        self._device: torch.device = placement.resolved()[0]
        folder = base(cache=cache).folder
        self._encoder: PreTrainedModel = encoder(folder).to(self._device).eval()
        self._tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)

    def embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        from models.language.scoring import batches  # noqa: PLC0415

        asked = [PREFIX + text for text in texts]
        ids = self._tokenizer(asked, truncation=True, max_length=TOKENS)["input_ids"]
        found: dict[int, NDArray[np.float32]] = {}
        for places in batches([len(one) for one in ids], BATCH_TOKENS):
            found.update(zip(places, self._pooled([ids[place] for place in places]), strict=True))
        return np.stack([found[place] for place in range(len(ids))])

    def _pooled(self, ids: list[list[int]]) -> NDArray[np.float32]:
        import torch  # noqa: PLC0415

        encoded = self._tokenizer.pad({"input_ids": ids}, return_tensors="pt").to(self._device)
        with torch.inference_mode():
            hidden = self._encoder(**encoded).last_hidden_state
        mask = encoded["attention_mask"].unsqueeze(-1)
        mean = (hidden * mask).sum(dim=1) / mask.sum(dim=1)
        pooled: NDArray[np.float32] = torch.nn.functional.normalize(mean, dim=-1).cpu().numpy()
        return pooled


def judge(embedder: Embedder, threshold: float = THRESHOLD) -> EmbeddingJudge:
    """The judge by these embeddings; reports name encoder and threshold."""
    from models.encoder.weights import NAME  # noqa: PLC0415  # late, as above

    return EmbeddingJudge(embedder, threshold, NAME)
