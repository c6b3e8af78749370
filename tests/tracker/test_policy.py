"""The policy decides only where it is sure enough, and its stamp says all that it says."""

import os
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tracker.strategies import observations, observe, policies
from tracker.observations import Observation, Probabilities
from tracker.policy import Policy, Threshold, decide
from tracker.records import HolderKind
from tracker.stances import Expressed, Stance

STRICT = Policy(establish=Threshold(0.6), flip=Threshold(0.8), relevance=0.5)
NARROW = Policy(establish=Threshold(0.4, 0.25), flip=Threshold(0.4, 0.25))
TIE = Probabilities(support=0.5, oppose=0.5)


def _support(share: float) -> Probabilities:
    return Probabilities(support=share, none=1.0 - share)


@pytest.mark.parametrize(
    ("policy", "before", "expressed", "relevance", "after"),
    [
        (STRICT, Stance.UNKNOWN, _support(0.6), 1.0, Stance.SUPPORT),
        (STRICT, Stance.UNKNOWN, _support(0.59), 1.0, Stance.UNKNOWN),
        (STRICT, Stance.OPPOSE, _support(0.79), 1.0, Stance.OPPOSE),
        (STRICT, Stance.OPPOSE, _support(0.8), 1.0, Stance.SUPPORT),
        (STRICT, Stance.OPPOSE, _support(1.0), 0.49, Stance.OPPOSE),
        (STRICT, Stance.OPPOSE, _support(1.0), 0.5, Stance.SUPPORT),
        (STRICT, Stance.SUPPORT, Probabilities(neutral=1.0), 1.0, Stance.NEUTRAL),
        (STRICT, Stance.SUPPORT, Probabilities(none=1.0), 1.0, Stance.SUPPORT),
        (NARROW, Stance.UNKNOWN, Probabilities(0.5, 0.25, 0.25), 1.0, Stance.SUPPORT),
        (NARROW, Stance.UNKNOWN, Probabilities(0.5, 0.3, 0.2), 1.0, Stance.UNKNOWN),
    ],
)
def test_decides_by_probability_margin_and_relevance(
    policy: Policy, before: Stance, expressed: Probabilities, relevance: float, after: Stance
) -> None:
    assert decide(before, observe(expressed, relevance=relevance), policy) is after


@pytest.mark.parametrize("before", Stance)
@pytest.mark.parametrize("tie", [TIE, Probabilities(oppose=0.5, none=0.5), Probabilities(0.4, 0.4, 0.2)])
def test_a_tie_is_never_sure_even_without_a_margin(before: Stance, tie: Probabilities) -> None:
    assert decide(before, observe(tie), Policy(establish=Threshold(0.0), flip=Threshold(0.0))) is before


@given(st.sampled_from(Stance), observations, policies)
def test_decides_the_most_probable_position_or_the_state_before(
    before: Stance, observation: Observation, policy: Policy
) -> None:
    after = decide(before, observation, policy)
    assert after is before or after.value == observation.expressed.ranked()[0][0].value


@given(st.sampled_from(Stance), observations)
def test_nothing_expressed_moves_nothing(before: Stance, observation: Observation) -> None:
    nothing = msgspec.structs.replace(observation, expressed=Probabilities(none=1.0))
    assert decide(before, nothing, Policy(establish=Threshold(0.0), flip=Threshold(0.0))) is before


@pytest.mark.parametrize("kind", HolderKind)
def test_bots_and_systems_are_exempt_by_default(kind: HolderKind) -> None:
    assert Policy().exempts("ann", kind) is (kind in {HolderKind.BOT, HolderKind.SYSTEM})


def test_a_holder_may_be_exempt_by_name() -> None:
    policy = Policy(exempt_holders=frozenset({"ann"}))
    assert policy.exempts("ann", HolderKind.USER)
    assert not policy.exempts("bo", HolderKind.USER)


@given(policies, policies)
def test_stamps_are_equal_exactly_where_policies_are(one: Policy, other: Policy) -> None:
    assert (one.stamp == other.stamp) == (one == other)


@given(policies)
def test_a_policy_and_its_stamp_survive_toml_shaped_data(policy: Policy) -> None:
    again = msgspec.convert(msgspec.to_builtins(policy), Policy)
    assert (again, again.stamp) == (policy, policy.stamp)


def test_the_stamp_is_the_same_in_every_process() -> None:
    policy = Policy(exempt_holders=frozenset("abcdefgh"), exempt_kinds=frozenset(HolderKind))
    code = (
        "from tracker.policy import *; "
        "print(Policy(exempt_holders=frozenset('abcdefgh'), exempt_kinds=frozenset(HolderKind)).stamp)"
    )
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed}
        printed = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert printed.stdout.strip() == policy.stamp


@pytest.mark.parametrize("wrong", [{"flip": {"probability": 1.1}}, {"flop": {}}, {"relevance": -0.1}])
def test_a_wrong_policy_file_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, Policy)


def test_expressed_labels_are_stances_or_none() -> None:
    assert {label.value for label in Expressed} - {stance.value for stance in Stance} == {"none"}
