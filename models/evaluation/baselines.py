"""Baselines as engines, so that they run under the same fold: persistence only, majority, lexicon.

The fourth of the table, the untuned backbone, is engine `generative` without an adapter.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from models.datasets.dialogue import Dialogue
from models.evaluation.lexicon import Lexicon, observed, positions
from models.reader import Engine, ExplainRequest, ObserveRequest
from tracker.observations import Evidence, Explanation, Observation, Probabilities, Trigger
from tracker.stances import Emotion, Expressed, Sentiment, Stance, TriggerKind

Label = TypeVar("Label")

SURE = {label: Probabilities.of({label: 1.0}) for label in Expressed}


class Priors(msgspec.Struct, frozen=True):
    """The most frequent label of each kind: all that majority knows."""

    expressed: Expressed = Expressed.SUPPORT
    emotion: Emotion = Emotion.NEUTRAL
    sentiment: Sentiment = Sentiment.NEUTRAL
    trigger: TriggerKind = TriggerKind.FACTUAL_LOGICAL

    @classmethod
    def of(cls, dialogues: Iterable[Dialogue]) -> "Priors":
        """Counted on labelled dialogues: the training part's, never the one that judges.

        `expressed` is the most frequent definite stance after a turn, which said at every turn gives the most
        accurate constant state.
        """
        turns = [turn for dialogue in dialogues for turn in dialogue.turns]
        stance = _first((turn.stance for turn in turns if turn.stance is not Stance.UNKNOWN), Stance.SUPPORT)
        return cls(
            expressed=Expressed(stance.value),
            emotion=_first((turn.emotion for turn in turns), Emotion.NEUTRAL),
            sentiment=_first((turn.sentiment for turn in turns), Sentiment.NEUTRAL),
            trigger=_first((turn.trigger for turn in turns), TriggerKind.FACTUAL_LOGICAL),
        )


def _first(labels: Iterable[Label | None], default: Label) -> Label:
    counted = Counter(label for label in labels if label is not None)
    # By name where counts tie, so that the order of the files decides nothing.
    return min(counted, key=lambda label: (-counted[label], str(label)), default=default)


class Majority:
    """Says the most frequent position at every turn: each holder is established at once and never flips."""

    name = "majority"

    def __init__(self, priors: Priors | None = None) -> None:
        self._priors = priors or Priors()

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        return [self._observed(request, self.position(request)) for request in requests]

    def position(self, request: ObserveRequest) -> Probabilities:
        """What the turn is said to express."""
        return SURE[self._priors.expressed]

    def _observed(self, request: ObserveRequest, expressed: Probabilities) -> Observation:
        return observed(request, expressed, self.name, self._priors.emotion, self._priors.sentiment)

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """The most frequent trigger, at the flipping turn."""
        return [self._explained(request) for request in requests]

    def _explained(self, request: ExplainRequest) -> Explanation:
        turn = request.observed.turn
        return Explanation(
            turn=turn.turn,
            target=request.observed.target,
            trigger=Trigger(self._priors.trigger, (turn.turn,), (turn.holder,), 1.0),
            evidence=(Evidence(turn.turn, "text"),),
            rationale=turn.text,
        )

    def tokens(self, request: ObserveRequest) -> int:
        """1: nothing is read."""
        return 1


class Persistence(Majority):
    """Whoever has a stance keeps it: what the state alone gives.

    A holder's first turn establishes what the lexicon finds in it, else the most frequent position; after
    that nothing is ever expressed.
    """

    name = "persistence"

    def position(self, request: ObserveRequest) -> Probabilities:
        """The lexicon's word or the majority's while the state is unknown, then none."""
        if request.state is not Stance.UNKNOWN:
            return SURE[Expressed.NONE]
        (first, _), (_, _) = positions(request.turn.text).ranked()[:2]
        return super().position(request) if first is Expressed.NONE else SURE[first]


BASELINES: dict[str, Callable[[Priors], Engine]] = {
    "persistence": Persistence,
    "majority": Majority,
    "lexicon": lambda priors: Lexicon(),
}
