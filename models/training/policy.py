"""The fitting of policy thresholds on dev: exact flip F1 and stance accuracy, under a cap on false flips.

State and sides feed the reading, so every trial is a free run; but most turns are read under the states and
beside the sides of a trial before, and each reading is kept: dozens of trials cost the model no more than a
few.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import msgspec

from models.datasets.dialogue import Dialogue
from models.encoder import calibration
from models.encoder.calibration import Calibration
from models.encoder.engine import EncoderEngine
from models.language.rule import RuleEngine
from models.reader import Engine, ExplainRequest, ObserveRequest
from models.training import temperatures
from models.training.examples import examples
from models.training.judging import CHOOSING, FALSE_FLIPS, Figures, judge
from tracker.observations import Explanation, Observation
from tracker.policy import Policy, Threshold
from tracker.stances import Expressed, Stance

FILE = "policy.toml"
CAP = 30.0  # false flips in 1,000 turns
PROBABILITIES = (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
MARGINS = (0.0, 0.1, 0.2, 0.3)

Watch = Callable[[int, int], None]  # trials done, of how many
_Asked = tuple[str, str, Stance, tuple[Expressed | None, ...]]


class Fitted(msgspec.Struct, frozen=True):
    """What dev says is best, and the figures that it gives there."""

    calibration: Calibration | None  # None: of an engine without temperatures
    policy: Policy
    figures: Figures


class Remembering:
    """An engine that reads each turn once under each state and beside each course of sides.

    Explanations are not asked of the model.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine, self._seen = engine, dict[_Asked, Observation]()
        self._explainer = RuleEngine()

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order; what was read before comes from memory."""
        new = [request for request in requests if _key(request) not in self._seen]
        for request, observation in zip(new, self._engine.observe(new), strict=True):
            self._seen[_key(request)] = observation
        return [self._seen[_key(request)] for request in requests]

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """Anything well-formed: thresholds do not depend on it."""
        return self._explainer.explain(requests)

    def tokens(self, request: ObserveRequest) -> int:
        """The engine's."""
        return self._engine.tokens(request)


def fit(
    engine: Engine,
    dev: Sequence[Dialogue],
    *,
    name: str,
    cap: float = CAP,
    watch: Watch = lambda done, of: None,
) -> Fitted:
    """Temperatures, of an encoder, then thresholds of flips, of establishments, and of flips again."""
    fitted = None
    if isinstance(engine, EncoderEngine):
        fitted = temperatures.fitted(engine, examples(dev))
        engine = EncoderEngine(dataclasses.replace(engine.loaded, calibration=fitted))
    policy, found = best(Remembering(engine), dev, name=name, cap=cap, watch=watch)
    return Fitted(fitted, policy, found)


def best(
    engine: Engine,
    dev: Sequence[Dialogue],
    *,
    name: str,
    cap: float = CAP,
    watch: Watch = lambda done, of: None,
) -> tuple[Policy, Figures]:
    """The best policy that a walk over the grid finds, one threshold at a time, and its figures."""
    policy = Policy(name=name)
    chosen = (policy, judge(dev, engine, policy))
    walk = ("flip", "establish", "flip")
    trials = len(walk) * len(PROBABILITIES) * len(MARGINS)
    for turn, field in enumerate(walk):
        for trial, candidate in enumerate(_candidates(chosen[0], field)):
            figures = judge(dev, engine, candidate)
            if _worth(figures, cap) > _worth(chosen[1], cap):
                chosen = (candidate, figures)
            watch(turn * trials // len(walk) + trial + 1, trials)
    return chosen


def save(fitted: Fitted, folder: Path) -> None:
    """calibration.json, which the encoder reads, and policy.toml, which comes with the adapter."""
    if fitted.calibration is not None:
        calibration.save(fitted.calibration, folder)
    (folder / FILE).write_text(to_toml(fitted.policy), encoding="utf-8")


def to_toml(policy: Policy) -> str:
    """The fitted part of a policy; exemptions are the operator's."""
    tables = "".join(
        f"\n[{field}]\nprobability = {threshold.probability}\nmargin = {threshold.margin}\n"
        for field, threshold in (("establish", policy.establish), ("flip", policy.flip))
    )
    return f"name = {msgspec.json.encode(policy.name).decode()}\n{tables}"


def _candidates(policy: Policy, field: str) -> Iterator[Policy]:
    for probability, margin in product(PROBABILITIES, MARGINS):
        yield msgspec.structs.replace(policy, **{field: Threshold(probability, margin)})


def _worth(figures: Figures, cap: float) -> tuple[bool, float]:
    """Within the cap before all; beyond it by fewer false flips.

    There by exact flip F1 and stance accuracy together: flips alone would choose to establish the wrong side
    rather than none, since only who has a side can flip.
    """
    within = figures[FALSE_FLIPS] <= cap
    return within, figures[CHOOSING] + figures["stance_accuracy"] if within else -figures[FALSE_FLIPS]


def _key(request: ObserveRequest) -> _Asked:
    sides = tuple(turn.sides.get(request.target) for turn in request.window)
    return request.conversation, request.turn.turn, request.state, sides
