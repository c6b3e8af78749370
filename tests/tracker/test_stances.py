"""The transitions of StanceFlip 3.1: persistence, establishment, flip, and the one that may not be."""

import itertools
from enum import StrEnum

import pytest

from tracker.stances import (
    DEFINITE,
    Emotion,
    Expressed,
    IllegalTransition,
    Sentiment,
    Stance,
    TransitionKind,
    TriggerKind,
    transition,
)

PAIRS = list(itertools.product(Stance, repeat=2))
LEGAL = [(before, after) for before, after in PAIRS if before is after or after is not Stance.UNKNOWN]


def _kind(before: Stance, after: Stance) -> TransitionKind:
    if before is after:
        return TransitionKind.PERSISTENCE
    return TransitionKind.ESTABLISHMENT if before is Stance.UNKNOWN else TransitionKind.FLIP


@pytest.mark.parametrize(("before", "after"), LEGAL)
def test_transition_is_named_as_the_paper_names_it(before: Stance, after: Stance) -> None:
    moved = transition(before, after)
    assert (moved.kind, moved.before, moved.after) == (_kind(before, after), before, after)


@pytest.mark.parametrize("before", sorted(DEFINITE))
def test_a_definite_stance_never_becomes_unknown(before: Stance) -> None:
    with pytest.raises(IllegalTransition, match=before):
        transition(before, Stance.UNKNOWN)


def test_six_pairs_are_flips_and_all_between_definite_stances() -> None:
    found = [(a, b) for a, b in LEGAL if transition(a, b).kind is TransitionKind.FLIP]
    assert len(found) == 6
    assert all({before, after} <= DEFINITE for before, after in found)


def test_definite_is_all_but_unknown() -> None:
    assert frozenset(Stance) - {Stance.UNKNOWN} == DEFINITE


@pytest.mark.parametrize(
    ("words", "count"), [(Stance, 4), (Expressed, 4), (Emotion, 7), (Sentiment, 3), (TriggerKind, 4)]
)
def test_the_label_sets_have_the_papers_sizes(words: type[StrEnum], count: int) -> None:
    assert len(list(words)) == count


def test_every_expressed_position_but_none_is_a_definite_stance() -> None:
    assert {Stance(label.value) for label in Expressed if label is not Expressed.NONE} == DEFINITE
