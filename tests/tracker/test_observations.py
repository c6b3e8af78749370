"""Observations refuse what is no distribution, over the wire too, and rank without surprise."""

import math

import msgspec
import pytest
from hypothesis import given

from tests.tracker.strategies import observations, observe, probabilities
from tracker.observations import Observation, Probabilities, primary
from tracker.stances import Expressed

NO_DISTRIBUTIONS = [
    {},
    {"support": 0.5},
    {"support": 1.0, "oppose": 0.01},
    {"support": 1.5, "oppose": -0.5},
    {"support": math.nan, "none": 1.0},
    {"support": math.inf},
]


@pytest.mark.parametrize("values", NO_DISTRIBUTIONS)
def test_what_is_no_distribution_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="probabilities"):
        Probabilities(**values)


def test_what_is_no_distribution_is_refused_from_json() -> None:
    with pytest.raises(msgspec.ValidationError, match="sum to 1"):
        msgspec.json.decode(b'{"support": 0.7}', type=Probabilities)


def test_rounding_errors_of_a_model_are_taken() -> None:
    assert Probabilities(0.3333, 0.3333, 0.3333, 0.0).support == 0.3333


@pytest.mark.parametrize("relevance", [-0.1, 1.1, math.nan])
def test_relevance_lies_between_0_and_1(relevance: float) -> None:
    with pytest.raises(ValueError, match="relevance"):
        observe(relevance=relevance)


@given(probabilities())
def test_ranked_gives_every_label_once_from_most_to_least(found: Probabilities) -> None:
    ranked = found.ranked()
    assert {label for label, _ in ranked} == set(Expressed)
    assert [share for _, share in ranked] == sorted((share for _, share in ranked), reverse=True)
    assert all(found[label] == share for label, share in ranked)


def test_ties_rank_in_the_order_of_expressed() -> None:
    assert [label for label, _ in Probabilities(0.25, 0.25, 0.25, 0.25).ranked()] == list(Expressed)


def test_of_fills_missing_labels_with_0() -> None:
    assert Probabilities.of({Expressed.OPPOSE: 1}) == Probabilities(oppose=1.0)


@given(observations)
def test_an_observation_survives_json_and_msgpack(observation: Observation) -> None:
    for codec in (msgspec.json, msgspec.msgpack):
        assert codec.decode(codec.encode(observation), type=Observation) == observation


@pytest.mark.parametrize(
    ("tag", "language"), [("en", "en"), ("EN-gb", "en"), ("zh_Hant_TW", "zh"), ("yue", "yue")]
)
def test_tags_are_compared_by_their_primary_subtag(tag: str, language: str) -> None:
    assert primary(tag) == language
