"""How good an engine is on labelled dialogues, free-running, in the figures that choose between epochs."""

import math
from collections.abc import Sequence

import msgspec

from models.datasets.dialogue import Dialogue
from models.evaluation import runner
from models.evaluation.live import MEASURES
from models.evaluation.prediction import Case
from models.reader import Engine
from tracker.policy import Policy, Threshold

CHOOSING = "flip_exact_f1"
FALSE_FLIPS = "false_flips_per_1000_turns"
NAMES = (
    "stance_accuracy",
    CHOOSING,
    "flip_exact_precision",
    "flip_exact_recall",
    "flip_trigger_f1",
    "flip_trigger_turn_f1",
    FALSE_FLIPS,
    "emotion_accuracy",
    "expressed_calibration_error",
)
UNFITTED = Policy(name="unfitted", flip=Threshold(0.4))  # until thresholds are fitted, 0.4 beats 0.5


class Figures(msgspec.Struct, frozen=True):
    """The figures by name; what is undefined (nothing to find, nothing said) counts as 0."""

    values: dict[str, float]

    def __getitem__(self, name: str) -> float:
        """One of them."""
        return self.values[name]


def judge(dialogues: Sequence[Dialogue], engine: Engine, policy: Policy = UNFITTED) -> Figures:
    """The engine's figures under a policy."""
    predictions = runner.run(dialogues, engine, policy)
    cases = [Case(dialogue, said) for dialogue, said in zip(dialogues, predictions, strict=True)]
    found = {measure.name: measure.of(cases) for measure in MEASURES if measure.name in NAMES}
    return Figures({name: 0.0 if math.isnan(value) else value for name, value in found.items()})
