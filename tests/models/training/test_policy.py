import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
import torch

from models.encoder import calibration
from models.encoder.calibration import Calibration
from models.encoder.engine import EncoderEngine
from models.encoder.loading import load
from models.evaluation import runner
from models.language.backbone import Placement
from models.language.rule import RuleEngine
from models.language.weights import Found
from models.reader import ObserveRequest
from models.training import policy
from models.training.judging import judge
from models.training.policy import Remembering
from models.training.temperatures import FEWEST, _least
from tests.models.training.talks import corpus, talk
from tracker.observations import Observation, Probabilities
from tracker.policy import Policy, Threshold
from tracker.stances import Expressed, Stance


class Scripted(RuleEngine):
    """Right where Maya speaks, at 0.62; every `a b c` seems opposed to it, at 0.45."""

    def __init__(self) -> None:
        self.read = 0

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        self.read += len(requests)
        return [self._seen(request) for request in requests]

    def _seen(self, request: ObserveRequest) -> Observation:
        (observation,) = super().observe([request])
        text = request.turn.text
        said = Probabilities(none=1.0)
        if text.startswith("yes"):
            said = Probabilities(support=0.62, none=0.38)
        elif text.startswith("never"):
            said = Probabilities(oppose=0.62, none=0.38)
        elif text.startswith("a b c"):
            other = Stance.OPPOSE if request.state is Stance.SUPPORT else Stance.SUPPORT
            said = Probabilities(**{other.value: 0.45, "neutral": 0.44, "none": 0.11})
        return msgspec.structs.replace(observation, expressed=said)


DEV = corpus(8, "dev")


def test_thresholds_part_what_is_right_from_what_is_not() -> None:
    engine = Scripted()
    fitted, figures = policy.best(Remembering(engine), DEV, name="mine", cap=30.0)
    assert figures["flip_exact_f1"] == 1.0
    assert figures["false_flips_per_1000_turns"] == 0.0
    assert 0.45 <= fitted.flip.probability <= 0.62
    assert fitted.name == "mine"
    turns = sum(len(dialogue.turns) for dialogue in DEV)
    assert engine.read <= 3 * turns, "of some hundred trials"


class Faint(RuleEngine):
    """Says who supports, at 0.42 only."""

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        faint = Probabilities(support=0.42, none=0.3, oppose=0.28)
        return [
            msgspec.structs.replace(one, expressed=faint) if request.turn.text.startswith("yes") else one
            for one, request in zip(super().observe(requests), requests, strict=True)
        ]


def test_where_nobody_flips_stances_decide() -> None:
    still = [talk("still1", Stance.SUPPORT, split="dev")]
    fitted, figures = policy.best(Faint(), still, name="mine", cap=30.0)
    assert fitted.establish.probability <= 0.42
    assert figures["stance_accuracy"] == 1.0


def test_an_unmeetable_cap_gives_the_fewest_false_flips() -> None:
    _, figures = policy.best(Scripted(), DEV[:2], name="mine", cap=-1.0)
    assert figures["false_flips_per_1000_turns"] == 0.0


def test_memory_changes_no_figure() -> None:
    engine = Scripted()
    assert judge(DEV, Remembering(engine)).values["flip_exact_f1"] == judge(DEV, engine)["flip_exact_f1"]
    assert Remembering(engine).tokens(None) == 1


class Swayed(Scripted):
    """Says of every turn without a word what the last turn that took a side said."""

    def _seen(self, request: ObserveRequest) -> Observation:
        heard = [side for turn in request.window if (side := turn.sides.get(request.target)) is not None]
        seen = super()._seen(request)
        if request.turn.text[0] in "1a" and heard:
            return msgspec.structs.replace(
                seen, expressed=Probabilities(**{heard[-1].value: 0.55, "none": 0.45})
            )
        if request.turn.text.startswith("never") and request.state is Stance.UNKNOWN:
            return msgspec.structs.replace(seen, expressed=Probabilities(neutral=0.9, none=0.1))
        return seen


def test_memory_heeds_the_sides_that_another_policy_led_to() -> None:
    """Maya's third turn takes another side where her first one established nothing; Tom speaks after it."""
    swayed = [talk("swayed1", Stance.SUPPORT, Stance.OPPOSE, Stance.UNKNOWN, split="dev")]
    remembering, said = Remembering(Swayed()), []
    for least in (0.6, 0.7):
        tried = Policy(name="tried", establish=Threshold(least), flip=Threshold(0.5))
        said.append(runner.run(swayed, remembering, tried))
        assert said[-1] == runner.run(swayed, Swayed(), tried)
    heard = [predictions[0].turns[4].expressed for predictions in said]
    assert [one.ranked()[0][0] for one in heard if one] == [Expressed.OPPOSE, Expressed.NEUTRAL]


def test_a_policy_is_read_back_as_it_was(tmp_path: Path) -> None:
    fitted = Policy(name='a "b"', establish=Threshold(0.45, 0.1), flip=Threshold(0.6, 0.2))
    assert msgspec.convert(tomllib.loads(policy.to_toml(fitted)), Policy) == fitted


def test_temperatures_find_what_was_done_to_the_logits() -> None:
    random = torch.Generator().manual_seed(0)
    logits = torch.randn(3000, 4, generator=random)
    right = [[int(place)] for place in torch.multinomial(logits.softmax(-1), 1, generator=random)[:, 0]]
    assert _least(list(logits * 2), right) == pytest.approx(2.0, rel=0.1)
    assert _least(list(logits / 2), right) == pytest.approx(0.5, rel=0.1)
    assert _least(list(logits[: FEWEST - 1]), right[: FEWEST - 1]) == 1.0


def test_fitting_an_encoder_stores_both_files(found: Found, tmp_path: Path) -> None:
    engine = EncoderEngine(load(found, placement=Placement("cpu", "float32", threads=1)))
    seen: list[tuple[int, int]] = []
    fitted = policy.fit(engine, DEV, name="tiny", watch=lambda done, of: seen.append((done, of)))
    policy.save(fitted, tmp_path)
    assert seen[-1][0] == seen[-1][1] == len(seen)
    assert calibration.load(tmp_path) == fitted.calibration != Calibration()
    read = msgspec.convert(tomllib.loads((tmp_path / "policy.toml").read_text()), Policy)
    assert read == fitted.policy
