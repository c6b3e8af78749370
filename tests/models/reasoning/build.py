"""A short argument about a dog, and what the roles make of it."""

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.language.rule import RuleEngine
from models.reader import ExplainRequest, ObserveRequest
from models.reasoning.prompts import Change, Draft, Feelings
from tracker.context import WindowTurn
from tracker.observations import Observation, Trigger
from tracker.stances import Emotion, Sentiment, Stance, TriggerKind

TOPIC = "The debate concerning whether the office should get a second dog"
WINDOW = (
    WindowTurn("1", "Maya", "one dog is plenty"),
    WindowTurn("2", "Tom", "the vet says a lone dog gets ill", reply_to="1"),
)
CALM = Feelings(Emotion.NEUTRAL, Sentiment.NEUTRAL)

# What the critic's three questions and the request for a critique hold, and nothing else does.
ON_TARGET, ON_STANCE, ON_EVIDENCE = "about the topic", "this very change", "claims stand in"
CRITIQUE = "what is wrong with it and"
RATIONALE, BETTER = "Explain the change", "Write a better explanation"
KIND, SOURCE, FELT, STOOD, SAYS = "What kind", "Which turn", "How does", "stand after", "itself say"


class Closing(RuleEngine):
    """Engine `rule`, which tells whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


def ask(text: str = "+1 ok you convinced me", **changes: object) -> ObserveRequest:
    new = WindowTurn("9", "Maya", text, reply_to="2", language="en")
    asked = ObserveRequest("room", new, 0, "t-1", TOPIC, Stance.OPPOSE, WINDOW)
    return msgspec.structs.replace(asked, **changes)


def observation(request: ObserveRequest) -> Observation:
    return RuleEngine().observe([request])[0]


def flip(request: ObserveRequest | None = None, after: Stance = Stance.SUPPORT) -> ExplainRequest:
    asked = request or ask()
    return ExplainRequest(asked, observation(asked), after)


def change(**changes: object) -> Change:
    return Change(ask(**changes), Feelings(Emotion.SADNESS, Sentiment.NEGATIVE), Stance.SUPPORT)


def draft(rationale: str = "Tom named the vet.", turn: str = "2") -> Draft:
    return Draft(Trigger(TriggerKind.FACTUAL_LOGICAL, (turn,), ("Tom",), 0.9), rationale)


def dialogue(*said: tuple[str, str], **given: object) -> Dialogue:
    turns = (
        LabelledTurn(index=index, speaker=speaker, text=text, reply_to=index - 1 if index else None)
        for index, (speaker, text) in enumerate(said)
    )
    fields = {"id": "d", "source": "test", "language": "en", "proposition": TOPIC}
    return Dialogue(turns=tuple(turns), **(fields | given))
