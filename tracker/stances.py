"""Stances, what moves them, and the transitions of StanceFlip section 3.1 and Table 7."""

import enum

import msgspec


class Stance(enum.StrEnum):
    """A holder's position toward one target: a state carried through the conversation."""

    UNKNOWN = "unknown"
    SUPPORT = "support"
    NEUTRAL = "neutral"  # a declared middle, not the absence of a position
    OPPOSE = "oppose"


class Expressed(enum.StrEnum):
    """What one turn, in its context, says of its holder's own position."""

    SUPPORT = "support"
    OPPOSE = "oppose"
    NEUTRAL = "neutral"
    NONE = "none"


class Emotion(enum.StrEnum):
    """The seven emotions of StanceFlip section 3.1."""

    ANGER = "anger"
    DISGUST = "disgust"
    FEAR = "fear"
    JOY = "joy"
    NEUTRAL = "neutral"
    SADNESS = "sadness"
    SURPRISE = "surprise"


class Sentiment(enum.StrEnum):
    """How the holder feels in a turn; it does not decide the stance."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    NEUTRAL = "neutral"


class TriggerKind(enum.StrEnum):
    """What moved a holder: the four mechanisms of StanceFlip section 3.1, subtask II."""

    FACTUAL_LOGICAL = "factual_logical"
    EMOTIONAL_VALUE = "emotional_value"
    PERSONAL_EXPERIENCE = "personal_experience"
    SOCIAL_INFLUENCE = "social_influence"


class TransitionKind(enum.StrEnum):
    """How a state moved at a turn."""

    ESTABLISHMENT = "establishment"  # unknown to a definite stance: never a flip
    PERSISTENCE = "persistence"  # nothing moved; fillers and questions inherit
    FLIP = "flip"  # one definite stance to a different one


class IllegalTransition(ValueError):
    """A definite stance was asked to become unknown."""


class Transition(msgspec.Struct, frozen=True):
    """One step of a state: its kind, and the stances before and after."""

    kind: TransitionKind
    before: Stance
    after: Stance


DEFINITE = frozenset({Stance.SUPPORT, Stance.NEUTRAL, Stance.OPPOSE})


def transition(before: Stance, after: Stance) -> Transition:
    """Name the step from `before` to `after` (StanceFlip 3.1: persistence, establishment, flip).

    Raises IllegalTransition where a definite stance would become unknown.
    """
    if before is after:
        return Transition(TransitionKind.PERSISTENCE, before, after)
    if after is Stance.UNKNOWN:
        raise IllegalTransition(f"a holder who has taken the stance {before} cannot return to unknown")
    if before is Stance.UNKNOWN:
        return Transition(TransitionKind.ESTABLISHMENT, before, after)
    return Transition(TransitionKind.FLIP, before, after)
