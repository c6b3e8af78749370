"""Engine `generative`: a causal language model that scores labels, and writes words only for a flip.

Relevance is 1 - P(none): what says nothing of a position cannot move one, and no corpus labels relevance
apart, so a slot of its own could be neither trained nor calibrated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import torch
from torch import Tensor

from models.language.backbone import Backbone, Placement, load, local
from models.language.budget import fit
from models.language.labels import EMOTION, EXPRESSED, SENTIMENT, Slot, Tree
from models.language.marks import missing
from models.language.prompts import INSTRUCTION, REASON_INSTRUCTION, observe_body, quoted
from models.language.rule import UNDETERMINED
from models.language.scoring import Scorer, Scores, corrected
from models.language.settings import InvalidSetting, ReaderSettings
from models.language.triggers import Attribution
from models.language.weights import SMOLLM2, Found, resolve
from models.language.writing import Writer
from models.reader import ExplainRequest, ObserveRequest
from tracker.context import WindowTurn
from tracker.observations import Explanation, Mark, Model, Observation, Probabilities
from tracker.stances import Emotion, Expressed, Sentiment, Stance

ENGINE = "generative"
DIGITS = 6  # of a probability: more is noise, and JSON
SLOTS = (EXPRESSED, EMOTION, SENTIMENT)
SILENCE = ("N/A", "...", "")  # new turns that say nothing, to measure what labels get for nothing
BYTES_A_TOKEN = 3
REASON_TOKENS = 48


@dataclass(frozen=True)
class Limits:
    """Tokens: of a request shown in one prompt, and of prompts in one forward pass."""

    budget: int = 640
    batch: int = 4096


class GenerativeEngine:
    """Reads turns with a causal language model; not safe between threads, as no engine is."""

    def __init__(
        self,
        backbone: Backbone,
        limits: Limits | None = None,
        *,
        correct: bool | None = None,
        cached: bool = True,
    ) -> None:
        """`correct`: take label priors out; None: only of an untrained model, since training learns them."""
        self._limits = limits or Limits()
        self._backbone = backbone
        self._scorer = Scorer(backbone, INSTRUCTION, self._limits.batch, cached=cached)
        self._tree = Tree(SLOTS, backbone.encode)
        self._correct = backbone.untrained if correct is None else correct
        self._priors: dict[Stance, Scores] = {}
        writer = Writer(backbone, REASON_INSTRUCTION, self._limits.batch, REASON_TOKENS)
        self._attribution = Attribution(self._scorer, writer, correct=self._correct)
        self._check_room()

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order; label probabilities do not depend on who shares the batch."""
        bodies = [self.body(request) for request in requests]
        seen: dict[int, Observation] = {}
        with torch.inference_mode():
            for read in self._scorer.read(bodies, self._tree):
                for row, place in enumerate(read.places):
                    scores = {cue: values[row] for cue, values in read.scores.items()}
                    seen[place] = self._observation(requests[place], scores)
        return [seen[place] for place in range(len(requests))]

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        with torch.inference_mode():
            return self._attribution.explain(
                [
                    msgspec.structs.replace(request, observed=self._fitted(request.observed))
                    for request in requests
                ]
            )

    def body(self, request: ObserveRequest) -> str:
        """What a prompt shows of a request, behind the instruction."""
        return observe_body(self._fitted(request))

    def tokens(self, request: ObserveRequest) -> int:
        """About how many tokens a request costs: from its bytes, so that asking costs nothing."""
        texts = (request.proposition, request.turn.text, *(turn.text for turn in request.window))
        shown = min(sum(len(text.encode()) for text in texts) // BYTES_A_TOKEN, self._limits.budget)
        return shown + len(self._tree.ids)

    def _check_room(self) -> None:
        needed = self._scorer.frame_tokens + self._limits.budget + len(self._tree.ids)
        if needed > self._backbone.positions:
            raise InvalidSetting(
                "budget_tokens",
                f"{self._limits.budget} with the instruction is {needed} tokens",
                f"this model attends to {self._backbone.positions}",
            )

    def _fitted(self, request: ObserveRequest) -> ObserveRequest:
        return fitted(self._backbone, request, self._limits.budget)

    def _prior(self, state: Stance) -> Scores:
        """Measured once a state: a model that merely repeats the state it is shown is corrected too."""
        if state not in self._priors:
            silent = [ObserveRequest("", WindowTurn(".", "A", text), 0, "", "N/A", state) for text in SILENCE]
            self._priors[state] = self._scorer.prior(
                [observe_body(request) for request in silent], self._tree
            )
        return self._priors[state]

    def _observation(self, request: ObserveRequest, scores: Mapping[str, Tensor]) -> Observation:
        prior = self._prior(request.state) if self._correct else {}
        shares = {
            slot.cue: _by_label(slot, corrected(scores[slot.cue], prior.get(slot.cue, [None])[0]))
            for slot in self._tree.slots
        }
        expressed = shares[EXPRESSED.cue]
        return Observation(
            turn=request.turn.turn,
            revision=request.revision,
            target=request.target,
            holder=request.turn.holder,
            expressed=Probabilities(**expressed),
            emotion=Emotion(_likeliest(shares[EMOTION.cue])),
            sentiment=Sentiment(_likeliest(shares[SENTIMENT.cue])),
            relevance=round(1.0 - expressed[Expressed.NONE], DIGITS),
            read_under=request.state,
            model=self._model(request.turn.language or UNDETERMINED),
            marks=missing(request) + ((Mark.UNTRAINED,) if self._backbone.untrained else ()),
        )

    @property
    def model(self) -> Model:
        """Who reads, whatever the language."""
        return self._model(UNDETERMINED)

    def _model(self, language: str) -> Model:
        return Model(self._backbone.name, self._backbone.revision, ENGINE, language)


def fitted(backbone: Backbone, request: ObserveRequest, budget: int) -> ObserveRequest:
    """The request as a prompt shows it: cut to so many of the model's tokens, as they are once quoted."""
    return fit(request, budget, lambda text: len(backbone.encode(quoted(text))))


def _embedded(settings: ReaderSettings) -> Found:
    return resolve(SMOLLM2, cache=settings.cache, hub=settings.hub)


def backbone_from(settings: ReaderSettings) -> Backbone:
    """The language model that settings name, else the embedded one."""
    found = local(settings.path) if settings.path else _embedded(settings)
    return load(found, settings.adapter, Placement(settings.device, settings.dtype, settings.threads))


def on(backbone: Backbone, settings: ReaderSettings) -> GenerativeEngine:
    """The engine that settings ask for, on a backbone that is loaded already."""
    return GenerativeEngine(backbone, Limits(settings.budget_tokens, settings.batch_tokens))


def _by_label(slot: Slot, shares: Tensor) -> dict[str, float]:
    return {
        str(label): round(share, DIGITS) for label, share in zip(slot.words, shares.tolist(), strict=True)
    }


def _likeliest(shares: Mapping[str, float]) -> str:
    return max(shares, key=shares.__getitem__)
