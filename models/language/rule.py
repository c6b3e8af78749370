"""Engine `rule`: reads a marker at the start of a text. No weights; answers at once and always the same.

For fault tests and throughput, where the answer must be known beforehand, and as a floor in tables.
"""

from collections.abc import Sequence
from functools import lru_cache

from models.language.marks import missing
from models.reader import ExplainRequest, ObserveRequest
from tracker.context import WindowTurn
from tracker.observations import Evidence, Explanation, Model, Observation, Probabilities, Trigger
from tracker.stances import Emotion, Sentiment, TriggerKind

MARKERS = {
    "+1": Probabilities(support=1.0),
    "-1": Probabilities(oppose=1.0),
    "+0": Probabilities(neutral=1.0),
}
NOTHING = Probabilities(none=1.0)
NAME, REVISION, ENGINE = "rule", "1", "rule"
UNDETERMINED = "und"  # BCP 47's word for a language nobody named


class RuleEngine:
    """Reads `+1`, `-1` and `+0` at the very start of a text as support, oppose and neutral."""

    immediate = True  # needs no thread of its own
    model = Model(NAME, REVISION, ENGINE, UNDETERMINED)

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        return [_observed(request) for request in requests]

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        return [_explained(request) for request in requests]

    def tokens(self, request: ObserveRequest) -> int:
        """1: a marker costs the same in any text."""
        return 1


@lru_cache(maxsize=256)
def _model(language: str) -> Model:
    return Model(NAME, REVISION, ENGINE, language)


def _observed(request: ObserveRequest) -> Observation:
    turn = request.turn
    return Observation(
        turn=turn.turn,
        revision=request.revision,
        target=request.target,
        holder=turn.holder,
        expressed=MARKERS.get(turn.text[:2], NOTHING),
        emotion=Emotion.NEUTRAL,
        sentiment=Sentiment.NEUTRAL,
        relevance=1.0,
        read_under=request.state,
        model=_model(turn.language or UNDETERMINED),
        marks=missing(request),
    )


def _explained(request: ExplainRequest) -> Explanation:
    turn = request.observed.turn
    mover = _mover(request.observed)
    return Explanation(
        turn=turn.turn,
        target=request.observed.target,
        trigger=Trigger(TriggerKind.FACTUAL_LOGICAL, (mover.turn,), (mover.holder,), 1.0),
        evidence=(Evidence(turn.turn, "text"),),
        rationale=f'The text begins with "{turn.text[:2]}": {request.after}.',
    )


def _mover(request: ObserveRequest) -> WindowTurn:
    """The turn replied to, else the turn before, else the turn itself."""
    return request.reply or (request.window[-1] if request.window else request.turn)
