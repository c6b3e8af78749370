"""The state machine under any policy and any sequence of observations."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tracker.strategies import observations, observe, policies
from tracker.machine import UNKNOWN, StanceState, confidence, step
from tracker.observations import Observation, Probabilities
from tracker.policy import Policy
from tracker.stances import DEFINITE, Expressed, Stance, Transition, TransitionKind

sequences = st.lists(observations, max_size=30)


def _walk(seen: list[Observation], policy: Policy) -> tuple[list[StanceState], list[Transition]]:
    states, moves = [UNKNOWN], []
    for observation in seen:
        state, moved = step(states[-1], observation, policy)
        states.append(state)
        moves.append(moved)
    return states, moves


@given(sequences, policies)
def test_no_illegal_transition_is_reachable(seen: list[Observation], policy: Policy) -> None:
    states, moves = _walk(seen, policy)
    for (before, after), moved in zip(itertools.pairwise(states), moves, strict=True):
        assert (moved.before, moved.after) == (before.stance, after.stance)
        assert moved.after in DEFINITE or moved.before is Stance.UNKNOWN


@given(sequences, policies)
def test_only_a_change_between_definite_stances_is_a_flip(seen: list[Observation], policy: Policy) -> None:
    for moved in _walk(seen, policy)[1]:
        flipped = moved.before is not moved.after and moved.before in DEFINITE
        assert (moved.kind is TransitionKind.FLIP) == flipped


@given(sequences, policies)
def test_at_most_one_establishment_and_it_comes_before_any_flip(
    seen: list[Observation], policy: Policy
) -> None:
    kinds = [moved.kind for moved in _walk(seen, policy)[1] if moved.kind is not TransitionKind.PERSISTENCE]
    assert kinds == [TransitionKind.ESTABLISHMENT, *[TransitionKind.FLIP] * (len(kinds) - 1)][: len(kinds)]


@given(sequences, policies)
def test_flips_are_counted(seen: list[Observation], policy: Policy) -> None:
    states, moves = _walk(seen, policy)
    assert states[-1].flips == sum(moved.kind is TransitionKind.FLIP for moved in moves)


@given(sequences, policies)
def test_persistence_keeps_the_state_and_a_move_names_its_turn(
    seen: list[Observation], policy: Policy
) -> None:
    states, moves = _walk(seen, policy)
    for observation, before, after, moved in zip(seen, states, states[1:], moves, strict=False):
        if moved.kind is TransitionKind.PERSISTENCE:
            assert after is before
        else:
            assert (after.turn, after.confidence) == (observation.turn, confidence(observation, after.stance))


@given(sequences, policies, st.integers(0, 30))
def test_a_walk_may_be_cut_anywhere(seen: list[Observation], policy: Policy, cut: int) -> None:
    state = _walk(seen[:cut], policy)[0][-1]
    for codec in (msgspec.json, msgspec.msgpack):
        state = codec.decode(codec.encode(state), type=StanceState)
    for observation in seen[cut:]:
        state, _ = step(state, observation, policy)
    assert state == _walk(seen, policy)[0][-1]


@pytest.mark.parametrize(
    ("stance", "expected"),
    [(Stance.SUPPORT, 0.1), (Stance.OPPOSE, 0.2), (Stance.NEUTRAL, 0.3), (Stance.UNKNOWN, 0.4)],
)
def test_confidence_is_the_probability_of_the_position(stance: Stance, expected: float) -> None:
    assert confidence(observe(Probabilities(0.1, 0.2, 0.3, 0.4)), stance) == expected


def test_the_papers_example_support_filler_oppose() -> None:
    seen = [observe(label, turn=label) for label in (Expressed.SUPPORT, Expressed.NONE, Expressed.OPPOSE)]
    states, moves = _walk(seen, Policy())
    assert [moved.kind for moved in moves] == ["establishment", "persistence", "flip"]
    assert states[-1] == StanceState(Stance.OPPOSE, "oppose", 1.0, 1)
