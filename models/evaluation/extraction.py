"""From a live system's reading to StanceFlip's sextuples and flips: the paper's tables from the live run."""

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.evaluation.prediction import Case, Step
from models.evaluation.stanceflip import Extraction, Flip, Sextuple


def extraction(case: Case) -> Extraction:
    """A dialogue's sextuples, one a turn, and its flips."""
    steps = list(case.steps())
    target = case.dialogue.proposition
    return Extraction(
        context=context(case.dialogue),
        predicted=tuple(_said(step, target) for step in steps),
        gold=tuple(_gold(step, target) for step in steps),
        predicted_flips=tuple(
            _said_flip(step) for step in steps if step.said.flip and step.flipped is not None
        ),
        gold_flips=tuple(flip for step in steps if step.flipped for flip in _gold_flip(step)),
    )


def context(dialogue: Dialogue) -> str:
    """The full dialogue as the judge is shown it, media as their descriptions."""
    return "\n".join(_line(turn) for turn in dialogue.turns)


def _line(turn: LabelledTurn) -> str:
    cues = "".join(
        f" [{item.modality}: {item.description}]" for item in turn.media if item.description is not None
    )
    return f"{turn.speaker}: {turn.text}{cues}"


def _said(step: Step, target: str | None) -> Sextuple:
    said = step.said
    return Sextuple(
        holder=said.holder,
        target=target,
        emotion=said.emotion,
        sentiment=said.sentiment,
        stance=said.stance,
        rationale=said.rationale,
        flip=said.flip,
        turn=said.index,
    )


def _gold(step: Step, target: str | None) -> Sextuple:
    gold = step.gold
    return Sextuple(
        holder=gold.speaker,
        target=target,
        emotion=gold.emotion,
        sentiment=gold.sentiment,
        stance=gold.stance,
        rationale=gold.rationale,
        flip=step.flipped,
        turn=gold.index,
    )


def _said_flip(step: Step) -> Flip:
    return Flip(step.said.before, step.said.stance, step.said.trigger)


def _gold_flip(step: Step) -> tuple[Flip, ...]:
    """Empty where a source marks a flip but does not say to which stance."""
    return (Flip(step.before, step.gold.stance, step.gold.trigger),) if step.gold.stance else ()
