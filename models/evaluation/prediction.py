"""What a system said of a dialogue, turn by turn, beside what annotators said."""

from collections.abc import Iterator

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn
from tracker.observations import Probabilities
from tracker.stances import DEFINITE, Emotion, Sentiment, Stance, TransitionKind, TriggerKind, transition


class PredictedTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn as a system read it: its own state before and after, and on a flip what moved the holder.

    `expressed`, `emotion` and `sentiment` are None where the turn was not read.
    """

    index: int
    holder: str
    before: Stance
    stance: Stance
    expressed: Probabilities | None = None
    emotion: Emotion | None = None
    sentiment: Sentiment | None = None
    trigger: TriggerKind | None = None
    trigger_turns: tuple[int, ...] = ()
    rationale: str | None = None

    @property
    def flip(self) -> bool:
        """Whether the state moved from one definite stance to another."""
        return transition(self.before, self.stance).kind is TransitionKind.FLIP


class Prediction(msgspec.Struct, frozen=True):
    """A system's reading of one dialogue, in the order of its turns."""

    dialogue: str
    turns: tuple[PredictedTurn, ...]


class Step(msgspec.Struct, frozen=True):
    """One turn: the labels, the prediction, and the speaker's gold state before the turn."""

    gold: LabelledTurn
    said: PredictedTurn
    before: Stance

    @property
    def flipped(self) -> bool | None:
        """Whether the speaker flipped by the labels, or by their stances; None where neither is given."""
        if self.gold.flip is not None or self.gold.stance is None:
            return self.gold.flip
        moved = self.gold.stance is not self.before
        return moved and self.before in DEFINITE and self.gold.stance in DEFINITE

    @property
    def direction(self) -> tuple[Stance, Stance | None]:
        """From and to, by the labels."""
        return self.before, self.gold.stance

    @property
    def said_direction(self) -> tuple[Stance, Stance]:
        """From and to, by the prediction."""
        return self.said.before, self.said.stance


class Case(msgspec.Struct, frozen=True):
    """A labelled dialogue and one system's reading of it. Raises ValueError where that is of another."""

    dialogue: Dialogue
    prediction: Prediction

    def __post_init__(self) -> None:
        """Refuse a prediction of other turns: figures would compare unlike things."""
        asked = [(turn.index, turn.speaker) for turn in self.dialogue.turns]
        if self.prediction.dialogue != self.dialogue.id or asked != [
            (turn.index, turn.holder) for turn in self.prediction.turns
        ]:
            raise ValueError(f"the prediction of {self.prediction.dialogue} is not of {self.dialogue.id}")

    def steps(self) -> Iterator[Step]:
        """Its turns in order."""
        states: dict[str, Stance] = {}
        for gold, said in zip(self.dialogue.turns, self.prediction.turns, strict=True):
            yield Step(gold, said, states.get(gold.speaker, Stance.UNKNOWN))
            if gold.stance in DEFINITE:
                states[gold.speaker] = gold.stance
