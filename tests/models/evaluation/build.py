"""Small dialogues and predictions, written as one line a turn."""

from collections.abc import Iterable

from hypothesis import strategies as st

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.evaluation.prediction import Case, PredictedTurn, Prediction
from tracker.observations import Probabilities
from tracker.stances import DEFINITE, Emotion, Expressed, Sentiment, Stance, TriggerKind

SUP, OPP, NEU, UNK = Stance.SUPPORT, Stance.OPPOSE, Stance.NEUTRAL, Stance.UNKNOWN
FACT, FEEL, LIVED, PEERS = TriggerKind
PROPOSITION = "The debate concerning whether the room should be painted"

Line = tuple[str, Stance]  # speaker and stance after the turn


def dialogue(*lines: Line, ident: str = "d", trigger: TriggerKind = FACT, **given: object) -> Dialogue:
    """Flips carry `trigger`, by the turn before."""
    states: dict[str, Stance] = {}
    turns = []
    for index, (speaker, stance) in enumerate(lines):
        before = states.get(speaker, UNK)
        flip = before in DEFINITE and stance is not before
        turns.append(
            LabelledTurn(
                index=index,
                speaker=speaker,
                text=f"turn {index}",
                emotion=Emotion.JOY,
                sentiment=Sentiment.POSITIVE,
                expressed=Expressed.NONE if before is stance else Expressed(stance.value),
                stance=stance,
                flip=flip,
                trigger=trigger if flip else None,
                trigger_turns=(index - 1,) if flip else (),
                rationale="because" if flip else None,
            )
        )
        states[speaker] = stance
    fields = {"language": "en", "source": "test", "proposition": PROPOSITION, "register": "team chat"}
    return Dialogue(id=ident, turns=tuple(turns), **(fields | given))


def prediction(
    *lines: Line, ident: str = "d", trigger: TriggerKind = FACT, turns: Iterable[int] | None = None
) -> Prediction:
    """What a system said: stances, and for its flips a trigger, by default by the turn before."""
    states: dict[str, Stance] = {}
    said = []
    for index, (speaker, stance) in enumerate(lines):
        before = states.get(speaker, UNK)
        flip = before in DEFINITE and stance is not before
        label = Expressed.NONE if before is stance else Expressed(stance.value)
        said.append(
            PredictedTurn(
                index=index,
                holder=speaker,
                before=before,
                stance=stance,
                expressed=Probabilities.of({label: 1.0}),
                emotion=Emotion.JOY,
                sentiment=Sentiment.POSITIVE,
                trigger=trigger if flip else None,
                trigger_turns=tuple(turns if turns is not None else (index - 1,)) if flip else (),
                rationale="because" if flip else None,
            )
        )
        states[speaker] = stance
    return Prediction(ident, tuple(said))


def case(gold: Iterable[Line], said: Iterable[Line], ident: str = "d") -> Case:
    """A dialogue and a system's reading of it."""
    return Case(dialogue(*gold, ident=ident), prediction(*said, ident=ident))


def talk(letters: str) -> list[Line]:
    """`aS bO aO`: speaker a supports, b opposes, a opposes."""
    stances = {"S": SUP, "O": OPP, "N": NEU, "U": UNK}
    return [(word[0], stances[word[1]]) for word in letters.split()]


@st.composite
def lines(draw: st.DrawFn, speakers: list[str] | None = None) -> list[Line]:
    """Turns whose states move as the machine's may: a definite stance never becomes unknown."""
    who = speakers or draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=8))
    states: dict[str, Stance] = {}
    found = []
    for speaker in who:
        allowed = [SUP, OPP, NEU] if states.get(speaker, UNK) in DEFINITE else [SUP, OPP, NEU, UNK]
        states[speaker] = draw(st.sampled_from(allowed))
        found.append((speaker, states[speaker]))
    return found


@st.composite
def cases(draw: st.DrawFn, ident: str = "d") -> Case:
    """A dialogue and another reading of the same turns."""
    gold = draw(lines())
    return case(gold, draw(lines([speaker for speaker, _ in gold])), ident)


@st.composite
def corpora(draw: st.DrawFn) -> list[Case]:
    """Several dialogues, each read."""
    return [draw(cases(ident=f"d{place}")) for place in range(draw(st.integers(1, 5)))]
