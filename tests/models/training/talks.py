"""Dialogues that a tiny encoder can learn: `yes` supports, `never` opposes, by turns."""

from models.datasets.dialogue import Dialogue, LabelledTurn
from tracker.stances import Emotion, Expressed, Sentiment, Stance, TriggerKind

WORDS = {Stance.SUPPORT: "yes yes", Stance.OPPOSE: "never", Stance.UNKNOWN: "a b c"}


def talk(ident: str, *stances: Stance, language: str = "en", split: str = "train") -> Dialogue:
    """Maya takes each stance in turn (unknown: she says nothing of it), Tom speaks before each."""
    turns: list[LabelledTurn] = []
    state = Stance.UNKNOWN
    for stance in stances:
        before, spoken = state, stance is not Stance.UNKNOWN
        state = stance if spoken else state
        flip = before is not state and before is not Stance.UNKNOWN
        said = {"emotion": Emotion.JOY, "sentiment": Sentiment.POSITIVE, "flip": False}
        at = len(turns)
        turns.append(
            LabelledTurn(
                index=at, speaker="Tom", text="1 2 3", expressed=Expressed.NONE, stance=Stance.UNKNOWN, **said
            )
        )
        turns.append(
            LabelledTurn(
                index=at + 1, speaker="Maya", text=WORDS[stance], reply_to=at,
                expressed=Expressed(stance.value) if spoken else Expressed.NONE, stance=state,
                trigger=TriggerKind.FACTUAL_LOGICAL if flip else None, trigger_turns=(at,) if flip else (),
                **(said | {"flip": flip}),
            )
        )  # fmt: skip
    about = {"proposition": f"get a dog {ident[-1]}", "register": "leaks labels", "domain": "leaks labels"}
    return Dialogue(id=ident, source="test", language=language, split=split, turns=tuple(turns), **about)


def corpus(count: int = 12, split: str = "train") -> list[Dialogue]:
    """Half of them flip."""
    up, down, nothing = Stance.SUPPORT, Stance.OPPOSE, Stance.UNKNOWN
    plots = [(up, down), (down, nothing, up), (up, nothing), (nothing, down)]
    return [talk(f"{split}{at}", *plots[at % len(plots)], split=split) for at in range(count)]
