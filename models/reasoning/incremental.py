"""Thought-of-Stance from state and window, turn by turn: any engine, with the Critic behind it.

The engine's observations are the Psychologist's and the Discourse Analyst's answers, its explanation is the
Synthesizer's draft. The Critic checks the draft; where it fails, all of it is made anew once with the
critique in view, and where the stance itself is doubted the turn is read anew before that (StanceFlip
section 4.2: one refinement, and no second look).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import structlog

from models import execution
from models.language.triggers import explained
from models.reader import Engine, ExplainRequest, ObserveRequest
from models.reasoning.answers import DIGITS, UNANSWERED
from models.reasoning.prompts import Change, Draft, Feelings, Objection
from models.reasoning.roles import Review, Roles
from tracker.observations import Critic, Explanation, Mark, Model, Observation, Probabilities
from tracker.stances import Expressed, Stance

ENGINE = "reasoning"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Case:
    """A flip, its draft, and what the Critic said of it."""

    request: ExplainRequest
    change: Change
    draft: Draft
    review: Review

    @property
    def objection(self) -> Objection:
        return Objection(self.draft, self.review.feedback)


class ReasoningEngine:
    """An engine whose explanations a critic has checked; its observations are the engine's own.

    Raises ReaderUnavailable where the model behind the roles is away. A flip that it will not talk about
    keeps the engine's explanation, unchecked: it must not cost the turn.
    """

    def __init__(self, engine: Engine, roles: Roles) -> None:
        self._engine, self._roles = engine, roles
        self.model = getattr(engine, "model", None)

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        return self._engine.observe(requests)

    def tokens(self, request: ObserveRequest) -> int:
        """As the engine counts."""
        return self._engine.tokens(request)

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order: passed, or refined once."""
        given = self._engine.explain(requests)
        try:
            return self._checked(requests, given)
        except UNANSWERED:
            return [self._alone(*pair) for pair in zip(requests, given, strict=True)]

    def close(self) -> None:
        """Close the engine."""
        execution.close(self._engine)

    def _alone(self, request: ExplainRequest, given: Explanation) -> Explanation:
        try:
            return self._checked([request], [given])[0]
        except UNANSWERED as error:
            _log.warning("critic.silent", error=type(error).__name__)
            return given

    def _checked(self, requests: Sequence[ExplainRequest], given: Sequence[Explanation]) -> list[Explanation]:
        changes = [self._change(request) for request in requests]
        drafts = [Draft(one.trigger, one.rationale) for one in given]
        reviews = self._roles.reviews(changes, drafts)
        cases = [*map(_Case, requests, changes, drafts, reviews)]
        refined = iter(self._refined([case for case in cases if not case.review.verdict.passed]))
        return [
            msgspec.structs.replace(one, critic=Critic.PASSED)
            if case.review.verdict.passed
            else next(refined)
            for one, case in zip(given, cases, strict=True)
        ]

    def _refined(self, cases: Sequence[_Case]) -> list[Explanation]:
        """The one refinement: of the reading where it is doubted, then of trigger and rationale."""
        anew = self._reread(cases)
        changes = [*map(_outcome, (case.change for case in cases), anew)]
        drafts = self._roles.drafts(changes, [case.objection for case in cases])
        return [
            msgspec.structs.replace(
                explained(one.request, draft.trigger, draft.rationale), critic=Critic.REFINED, refined=again
            )
            for one, draft, again in zip(changes, drafts, anew, strict=True)
        ]

    def _reread(self, cases: Sequence[_Case]) -> list[Observation | None]:
        """The turns whose stance the critic doubts, read with its critique; None for the others."""
        doubted = [case for case in cases if not case.review.verdict.stance]
        said = iter(
            self._roles.expressed(
                [case.change.request for case in doubted],
                [case.change.feelings for case in doubted],
                [case.review.feedback for case in doubted],
            )
        )
        return [
            None if case.review.verdict.stance else self._second(case.request, next(said)) for case in cases
        ]

    def _change(self, request: ExplainRequest) -> Change:
        """A flip as the roles are shown it."""
        felt = Feelings(request.observation.emotion, request.observation.sentiment)
        return Change(self._roles.room.fitted(request.observed), felt, request.after)

    def _second(self, request: ExplainRequest, said: Probabilities) -> Observation:
        """The first reading, but for what the turn says; relevance is 1 - P(none), as `generative` has it."""
        chat, first = self._roles.chat, request.observation
        return msgspec.structs.replace(
            first,
            revision=request.observed.revision,
            read_under=request.observed.state,  # a refold explains readings of another state, too
            expressed=said,
            relevance=max(0.0, round(1.0 - said.none, DIGITS)),
            model=Model(chat.name, chat.revision, ENGINE, first.model.language),
            marks=(*first.marks, Mark.REFINED),
        )


def _outcome(made: Change, anew: Observation | None) -> Change:
    """The change to be explained: the likeliest of the second reading, if that moves the holder at all.

    Where it does not, nothing flips and nobody sees the explanation.
    """
    if anew is None:
        return made
    first, _ = anew.expressed.ranked()[0]
    if first is Expressed.NONE or first.value == made.request.state.value:
        return made
    return msgspec.structs.replace(made, after=Stance(first.value))
