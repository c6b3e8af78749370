"""Engine on any language model that can be talked to: the roles read a turn from state and window.

What engine `generative` scores in one pass is asked here role by role, as a server must be asked.
"""

from collections.abc import Iterator, Sequence

from models.language.marks import missing
from models.language.rule import UNDETERMINED
from models.language.triggers import explained
from models.reader import ExplainRequest, ObserveRequest
from models.reasoning.answers import DIGITS
from models.reasoning.prompts import Change, Feelings
from models.reasoning.roles import Roles
from models.reasoning.room import estimated
from tracker.observations import Explanation, Mark, Model, Observation, Probabilities

ENGINE = "reasoning"


class RoleEngine:
    """Psychologist and Discourse Analyst observe, the Synthesizer explains; no critic looks at it here."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        shown = [self._roles.room.fitted(request) for request in requests]
        feelings = self._roles.feelings(shown)
        expressed = self._roles.expressed(shown, feelings, [None] * len(shown))
        marks = (Mark.UNTRAINED,) if getattr(self._roles.chat, "untrained", False) else ()
        return [
            observed(self._roles, request, felt, said, missing(request) + marks)
            for request, felt, said in zip(requests, feelings, expressed, strict=True)
        ]

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        changes = [change(self._roles, request) for request in requests]
        return [*_explained(changes, self._roles)]

    def tokens(self, request: ObserveRequest) -> int:
        """About how many tokens a request costs: from its bytes, so that asking costs nothing."""
        texts = (request.proposition, request.turn.text, *(turn.text for turn in request.window))
        return min(sum(map(estimated, texts)), self._roles.room.tokens)

    @property
    def model(self) -> Model:
        """Who reads, whatever the language."""
        return model(self._roles, UNDETERMINED)


def change(roles: Roles, request: ExplainRequest) -> Change:
    """A flip as the roles are shown it."""
    felt = Feelings(request.observation.emotion, request.observation.sentiment)
    return Change(roles.room.fitted(request.observed), felt, request.after)


def observed(
    roles: Roles, request: ObserveRequest, felt: Feelings, said: Probabilities, marks: tuple[Mark, ...]
) -> Observation:
    """What the roles say of a turn; relevance is 1 - P(none), as engine `generative` has it."""
    return Observation(
        turn=request.turn.turn,
        revision=request.revision,
        target=request.target,
        holder=request.turn.holder,
        expressed=said,
        emotion=felt.emotion,
        sentiment=felt.sentiment,
        relevance=max(0.0, round(1.0 - said.none, DIGITS)),
        read_under=request.state,
        model=model(roles, request.turn.language or UNDETERMINED),
        marks=marks,
    )


def model(roles: Roles, language: str) -> Model:
    """Who plays the roles."""
    return Model(roles.chat.name, roles.chat.revision, ENGINE, language)


def _explained(changes: Sequence[Change], roles: Roles) -> Iterator[Explanation]:
    for one, draft in zip(changes, roles.drafts(changes), strict=True):
        yield explained(one.request, draft.trigger, draft.rationale)
