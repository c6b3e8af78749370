"""An engine that also finds targets: the Cartographer beside it, on a model that can be talked to."""

from collections.abc import Sequence

import structlog

from models import execution
from models.reader import Engine, ExplainRequest, ObserveRequest, ProposeRequest
from models.reasoning.answers import UNANSWERED
from models.reasoning.cartographer import Cartographer
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal

_log = structlog.get_logger(__name__)


class FindingEngine:
    """Reads as its engine does, and asks the Cartographer what a conversation is about."""

    def __init__(self, engine: Engine, cartographer: Cartographer) -> None:
        self._engine, self._cartographer = engine, cartographer
        self.model = getattr(engine, "model", None)

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """As the engine observes."""
        return self._engine.observe(requests)

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """As the engine explains."""
        return self._engine.explain(requests)

    def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        """One proposal a request, in order; what the model will not talk about finds nothing."""
        return [self._proposal(request) for request in requests]

    def tokens(self, request: ObserveRequest) -> int:
        """As the engine counts."""
        return self._engine.tokens(request)

    def close(self) -> None:
        """Close the engine."""
        execution.close(self._engine)

    def _proposal(self, request: ProposeRequest) -> Proposal:
        nothing = Proposal(request.conversation, request.turns[-1].turn)
        try:
            return self._found(request, nothing)
        except UNANSWERED as error:
            _log.warning("cartographer.silent", error=type(error).__name__)
            return nothing

    def _found(self, request: ProposeRequest, nothing: Proposal) -> Proposal:
        known = request.proposition
        if known and not self._cartographer.drifted(known, request.turns):
            return nothing
        # Turns that are about nothing else leave the target as it is: small talk is no other debate.
        found = self._cartographer.propose(request.turns)
        if found is None or found == known:
            return nothing
        same = bool(known) and self._cartographer.same(known, found)
        return Proposal(nothing.conversation, nothing.turn, found, same)
