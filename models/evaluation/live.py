"""What a live system needs to know beside the papers' metrics: every flip by (conversation, turn, holder).

A turn has one holder, so its flip is a hit, a miss or a false alarm: `any` flip, the `exact` one (from and
to), the exact one with its trigger's kind, the exact one with a trigger turn hit.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from models.evaluation.calibration import brier, calibration_error, expressed_bins
from models.evaluation.measures import (
    Measure,
    Sums,
    confusion_accuracy,
    confusion_macro_f1,
    f1,
    per_thousand,
    precision,
    recall,
    share,
    sums,
)
from models.evaluation.prediction import Case, Step
from tracker.stances import Stance

STANCES = tuple(Stance)

Agrees = Callable[[Step], bool]


def confusion(case: Case) -> Sums:
    """(gold stance, predicted stance) in the order of STANCES, flattened; unlabelled turns are left out."""
    counted = np.zeros((len(STANCES), len(STANCES)))
    for step in case.steps():
        if step.gold.stance is not None:
            counted[STANCES.index(step.gold.stance), STANCES.index(step.said.stance)] += 1
    return counted.ravel()


def delays(case: Case) -> list[int]:
    """How many turns after each gold flip that was detected the system flipped its holder the same way.

    A detection is the first predicted flip of the same holder, from and to, at the gold flip or after it and
    before the holder's next gold flip. One that comes earlier detects nothing: it is a false flip.
    """
    steps = list(case.steps())
    return [after for at in _flips_at(steps) if (after := _delay(steps, at)) is not None]


def _flips_at(steps: Sequence[Step]) -> list[int]:
    return [at for at, step in enumerate(steps) if step.flipped]


def _delay(steps: Sequence[Step], at: int) -> int | None:
    flip = steps[at]
    for later, step in enumerate(steps[at:]):
        if step.gold.speaker != flip.gold.speaker:
            continue
        if later and step.flipped:
            return None
        if step.said.flip and step.said_direction == flip.direction:
            return later
    return None


def _flips(agrees: Agrees) -> Callable[[Case], Sums]:
    """(TP, FP, FN): a flip where none is, or the wrong one, is a false alarm; one not found so is a miss."""

    def tally(case: Case) -> Sums:
        counted = np.zeros(3)
        for step in case.steps():
            if step.flipped is not None:
                hit = bool(step.said.flip and step.flipped and agrees(step))
                counted += (hit, step.said.flip and not hit, step.flipped and not hit)
        return counted

    return tally


def _any(step: Step) -> bool:
    return True


def _exact(step: Step) -> bool:
    return step.direction == step.said_direction


def _with_trigger(step: Step) -> bool:
    return _exact(step) and step.gold.trigger is not None and step.gold.trigger is step.said.trigger


def _with_turn(step: Step) -> bool:
    return _exact(step) and bool(set(step.gold.trigger_turns) & set(step.said.trigger_turns))


def _false_flips(case: Case) -> Sums:
    steps = [step for step in case.steps() if step.flipped is not None]
    return sums(sum(step.said.flip and not step.flipped for step in steps), len(steps))


def _delay_sums(case: Case) -> Sums:
    found = delays(case)
    return sums(sum(found), len(found))


def _detected(case: Case) -> Sums:
    return sums(len(delays(case)), len(_flips_at(list(case.steps()))))


def _label(name: str) -> Callable[[Case], Sums]:
    """(right, labelled) of a turn's emotion or sentiment."""

    def tally(case: Case) -> Sums:
        pairs = [(getattr(step.gold, name), getattr(step.said, name)) for step in case.steps()]
        labelled = [(gold, said) for gold, said in pairs if gold is not None]
        return sums(sum(gold == said for gold, said in labelled), len(labelled))

    return tally


def _flip_measures() -> Iterator[Measure[Case]]:
    kinds: dict[str, Agrees] = {
        "flip_any": _any,
        "flip_exact": _exact,
        "flip_trigger": _with_trigger,
        "flip_trigger_turn": _with_turn,
    }
    for name, agrees in kinds.items():
        tally = _flips(agrees)
        yield Measure(f"{name}_f1", tally, f1)
        if agrees in (_any, _exact):
            yield Measure(f"{name}_precision", tally, precision)
            yield Measure(f"{name}_recall", tally, recall)


MEASURES: tuple[Measure[Case], ...] = (
    Measure("stance_accuracy", confusion, confusion_accuracy),
    Measure("stance_macro_f1", confusion, confusion_macro_f1),
    *_flip_measures(),
    Measure("false_flips_per_1000_turns", _false_flips, per_thousand),
    Measure("detection_delay_turns", _delay_sums, share),
    Measure("flips_detected_in_time", _detected, share),
    Measure("emotion_accuracy", _label("emotion"), share),
    Measure("sentiment_accuracy", _label("sentiment"), share),
    Measure("expressed_calibration_error", expressed_bins, calibration_error),
    Measure("expressed_brier", brier, share),
)
