"""Engine `encoder`: reads a turn in one pass, and explains a flip by what the pointer points at.

Relevance is a head of its own. It was taught by turns put beside another dialogue's proposition (0) and by
turns that express a position (1): it says how much a turn is about the target, not whether it takes sides.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.encoder.batching import collate
from models.encoder.features import TEXT, Features
from models.encoder.loading import Loaded, load
from models.encoder.network import EMOTIONS, EXPRESSED, SENTIMENTS, TRIGGERS, Outputs
from models.encoder.rationale import rationale
from models.encoder.weights import base
from models.language.backbone import Placement
from models.language.marks import missing
from models.language.rule import UNDETERMINED
from models.language.scoring import batches
from models.language.settings import ReaderSettings
from models.reader import ExplainRequest, ObserveRequest
from tracker.context import WindowTurn, find
from tracker.observations import Evidence, Explanation, Mark, Model, Observation, Probabilities, Trigger
from tracker.stances import Emotion, Sentiment

ENGINE = "encoder"
DIGITS = 6
BYTES_A_TOKEN = 4
BATCH_TOKENS = 4096


class _Pointed(NamedTuple):
    """A turn, its share of the pointer, and the modality that has the most of it."""

    turn: WindowTurn
    share: float
    modality: str


class EncoderEngine:
    """Reads turns with an encoder and heads; not safe between threads, as no engine is."""

    def __init__(self, loaded: Loaded, batch_tokens: int = BATCH_TOKENS) -> None:
        self.loaded, self._batch_tokens = loaded, batch_tokens

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        seen: dict[int, Observation] = {}
        for places, _, outputs in self.read(requests):
            expressed = self._shares(outputs.expressed, self.loaded.calibration.expressed)
            relevance = (outputs.relevance / self.loaded.calibration.relevance).sigmoid().tolist()
            emotions, sentiments = outputs.emotion.argmax(-1).tolist(), outputs.sentiment.argmax(-1).tolist()
            for row, place in enumerate(places):
                seen[place] = self._observation(
                    requests[place],
                    Probabilities.of(dict(zip(EXPRESSED, expressed[row], strict=True))),
                    EMOTIONS[emotions[row]],
                    SENTIMENTS[sentiments[row]],
                    relevance[row],
                )
        return [seen[place] for place in range(len(requests))]

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        done: dict[int, Explanation] = {}
        for places, features, outputs in self.read([request.observed for request in requests]):
            kinds = self._shares(outputs.trigger, self.loaded.calibration.trigger)
            parts = self._shares(outputs.pointer, self.loaded.calibration.pointer)
            for row, place in enumerate(places):
                done[place] = _explained(requests[place], features[row], kinds[row], parts[row])
        return [done[place] for place in range(len(requests))]

    def tokens(self, request: ObserveRequest) -> int:
        """About how many tokens a request costs: from its bytes, so that asking costs nothing."""
        texts = (request.proposition, request.turn.text, *(turn.text for turn in request.window))
        shown = sum(len(text.encode()) for text in texts) // BYTES_A_TOKEN + len(texts)
        return min(shown, self.loaded.featurizer.tokens)

    def read(self, requests: Sequence[ObserveRequest]) -> Iterator[tuple[list[int], list[Features], Outputs]]:
        """Batches of like lengths: the places of their requests, their features, the network's logits."""
        features = self.loaded.featurizer(requests)
        for places in batches([len(one.ids) for one in features], self._batch_tokens):
            part = [features[place] for place in places]
            batch = collate(part, self.loaded.featurizer.pad).to(self.loaded.device)
            with torch.inference_mode():
                outputs = self.loaded.network(batch, self.loaded.autocast)
            yield places, part, outputs

    @property
    def model(self) -> Model:
        """Who reads, whatever the language."""
        return self._model(UNDETERMINED)

    def _model(self, language: str) -> Model:
        return Model(self.loaded.name, self.loaded.revision, ENGINE, language)

    def _shares(self, logits: Tensor, temperature: float) -> list[list[float]]:
        shares: list[list[float]] = (logits / temperature).softmax(dim=-1).tolist()
        return [[round(share, DIGITS) for share in row] for row in shares]

    def _observation(
        self,
        request: ObserveRequest,
        expressed: Probabilities,
        emotion: Emotion,
        sentiment: Sentiment,
        relevance: float,
    ) -> Observation:
        return Observation(
            turn=request.turn.turn,
            revision=request.revision,
            target=request.target,
            holder=request.turn.holder,
            expressed=expressed,
            emotion=emotion,
            sentiment=sentiment,
            relevance=round(relevance, DIGITS),
            read_under=request.state,
            model=self._model(request.turn.language or UNDETERMINED),
            marks=missing(request) + ((Mark.UNTRAINED,) if self.loaded.untrained else ()),
        )


def from_settings(settings: ReaderSettings) -> EncoderEngine:
    """The engine on the encoder that settings name, else on the embedded one; the adapter says its budget."""
    found = base(settings.path, settings.cache)
    placement = Placement(settings.device, settings.dtype, settings.threads)
    return EncoderEngine(load(found, settings.adapter, placement), settings.batch_tokens)


def _explained(
    request: ExplainRequest, features: Features, kinds: Sequence[float], parts: Sequence[float]
) -> Explanation:
    turn = request.observed.turn
    pointed = _pointed(request.observed, features, parts)
    new, cause = pointed[0], max(pointed, key=lambda one: one.share)
    kind, confidence = max(zip(TRIGGERS, kinds, strict=True), key=lambda pair: pair[1])
    evidence = dict.fromkeys(Evidence(one.turn.turn, one.modality) for one in (new, cause))
    return Explanation(
        turn=turn.turn,
        target=request.observed.target,
        trigger=Trigger(kind, (cause.turn.turn,), (cause.turn.holder,), confidence),
        evidence=tuple(evidence),
        rationale=rationale(request, kind, (turn, new.modality), (cause.turn, cause.modality)),
    )


def _pointed(request: ObserveRequest, features: Features, parts: Sequence[float]) -> list[_Pointed]:
    """Every turn shown, the new one first; a turn's share is that of its parts."""
    found = []
    for index, ident in enumerate(features.shown):
        turn = request.turn if index == 0 else find(request.window, ident)
        assert turn is not None
        shares: defaultdict[str, float] = defaultdict(float)
        for part, share in zip(features.parts, parts, strict=False):  # a batch pads parts
            if part.turn == index:
                shares[part.modality] += share
        if not turn.text and len(shares) > 1:  # a turn without words cannot have been moved by them
            shares.pop(TEXT)
        found.append(_Pointed(turn, sum(shares.values()), max(shares, key=shares.__getitem__)))
    return found
