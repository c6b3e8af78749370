"""Baseline `lexicon`: counts a few cues of agreement and refusal in the new turn, in en, zh and es alike."""

import re
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar

from models.evaluation.cues import POSITIONS, TRIGGERS
from models.reader import ExplainRequest, ObserveRequest
from tracker.context import WindowTurn
from tracker.observations import Evidence, Explanation, Model, Observation, Probabilities, Trigger
from tracker.stances import Emotion, Expressed, Sentiment, TriggerKind

ENGINE, REVISION = "baseline", "1"
HIT, SILENCE = 2.0, 1.0  # one hit gives 2/3, over the default thresholds; opposite hits tie and move nothing
MAX_RATIONALE = 160

Label = TypeVar("Label", bound=Hashable)


class Cues(Generic[Label]):
    """Finds labels' phrases in a text, longest first; each place in the text counts once."""

    def __init__(self, phrases: Mapping[Label, Sequence[str]]) -> None:
        self._labels = {phrase: label for label, found in phrases.items() for phrase in found}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest = sorted(self._labels, key=lambda phrase: (-len(phrase), phrase))
        return re.compile("|".join(_whole(phrase) for phrase in longest))

    def hits(self, text: str) -> dict[Label, int]:
        """How often each label is named."""
        found: dict[Label, int] = {}
        for match in self._pattern.finditer(text.lower().replace("’", "'")):
            label = self._labels[match.group()]
            found[label] = found.get(label, 0) + 1
        return found


def _whole(phrase: str) -> str:
    """Word borders only where words have any: Chinese has none, and % is none."""
    latin = (phrase[0].isascii() and phrase[0].isalpha()) or phrase[0] in "áéíóúñ"
    return rf"(?<!\w){re.escape(phrase)}(?!\w)" if latin else re.escape(phrase)


_POSITIONS, _TRIGGERS = Cues(POSITIONS), Cues(TRIGGERS)


def positions(text: str) -> Probabilities:
    """What a text expresses, by its cues; none where it has none."""
    hits = _POSITIONS.hits(text)
    weights = {label: HIT * count for label, count in hits.items()} | {Expressed.NONE: SILENCE}
    return Probabilities.of({label: weight / sum(weights.values()) for label, weight in weights.items()})


def trigger_kind(text: str) -> TriggerKind:
    """The trigger that most cues of a text name; facts where it has none, the first of the four in a tie."""
    hits = _TRIGGERS.hits(text)
    return max(TriggerKind, key=lambda kind: hits.get(kind, 0))


class Lexicon:
    """Counts cues. It feels nothing: emotion and sentiment are neutral."""

    name = "lexicon"

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        return [observed(request, positions(request.turn.text), self.name) for request in requests]

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """The turn replied to, else the nearest of another holder, and the trigger that its cues name."""
        return [_explained(request) for request in requests]

    def tokens(self, request: ObserveRequest) -> int:
        """1: cues cost the same in any text."""
        return 1


def observed(
    request: ObserveRequest,
    expressed: Probabilities,
    name: str,
    emotion: Emotion = Emotion.NEUTRAL,
    sentiment: Sentiment = Sentiment.NEUTRAL,
) -> Observation:
    """A baseline's observation."""
    turn = request.turn
    return Observation(
        turn=turn.turn,
        revision=request.revision,
        target=request.target,
        holder=turn.holder,
        expressed=expressed,
        emotion=emotion,
        sentiment=sentiment,
        relevance=1.0,
        read_under=request.state,
        model=Model(name, REVISION, ENGINE, turn.language or "und"),
    )


def _explained(request: ExplainRequest) -> Explanation:
    turn = request.observed.turn
    mover = _mover(request.observed)
    kind = trigger_kind(" ".join((mover.text, *(item.description or "" for item in mover.media))))
    return Explanation(
        turn=turn.turn,
        target=request.observed.target,
        trigger=Trigger(kind, (mover.turn,), (mover.holder,), 1.0),
        evidence=(Evidence(turn.turn, "text"),),
        rationale=turn.text[:MAX_RATIONALE],
    )


def _mover(request: ObserveRequest) -> WindowTurn:
    others = (turn for turn in reversed(request.window) if turn.holder != request.turn.holder)
    return request.reply or next(others, request.turn)
