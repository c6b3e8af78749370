"""The stance state machine: one pure step from a state and an observation to the next state."""

import msgspec

from tracker.observations import Observation
from tracker.policy import Policy, decide
from tracker.stances import Expressed, Stance, Transition, TransitionKind, transition


class StanceState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A holder's stance toward a target: what it is, and the turn and confidence that made it."""

    stance: Stance = Stance.UNKNOWN
    turn: str | None = None
    confidence: float | None = None
    flips: int = 0


UNKNOWN = StanceState()


def step(state: StanceState, observation: Observation, policy: Policy) -> tuple[StanceState, Transition]:
    """Fold one observation, which makes exactly one transition; persistence keeps the state as it is."""
    moved = transition(state.stance, decide(state.stance, observation, policy))
    if moved.kind is TransitionKind.PERSISTENCE:
        return state, moved
    flips = state.flips + (moved.kind is TransitionKind.FLIP)
    return StanceState(moved.after, observation.turn, confidence(observation, moved.after), flips), moved


def confidence(observation: Observation, stance: Stance) -> float:
    """The probability that the turn expressed `stance` (for unknown: that it expressed nothing)."""
    label = Expressed.NONE if stance is Stance.UNKNOWN else Expressed(stance.value)
    return round(observation.expressed[label], 6)
