import random
from collections import Counter

import msgspec
import pytest

from models.encoder.features import Featurizer
from models.training.examples import Example, examples
from models.training.options import EncoderOptions
from models.training.variation import (
    beside,
    declared,
    masked,
    misread,
    reworded,
    stated,
    thinned,
    turned,
    under,
    varied,
)
from tests.models.encoder.tiny import make_tokenizer
from tests.models.training.talks import talk
from tracker.stances import Expressed, Stance

FLIPS = talk("x", Stance.SUPPORT, Stance.UNKNOWN, Stance.OPPOSE)
DEBATE = "The debate concerning whether dogs should bark"
NOTHING = EncoderOptions(turned=0.0, bare=0.0, declared=0.0, thinned=0.0, misread=0.0, unread=0.0)


def debated() -> list[Example]:
    return examples([msgspec.structs.replace(FLIPS, proposition=DEBATE)])


def test_another_state_changes_what_follows_from_it_alone() -> None:
    speaks, silent = examples([FLIPS])[1], examples([FLIPS])[3]
    for state in Stance:
        assert under(speaks, state).labels.after is Stance.SUPPORT
        assert under(silent, state).labels.after is state
        assert under(silent, state).request.state is state


def test_a_foreign_proposition_moves_nothing() -> None:
    labels = beside(examples([FLIPS])[5], "another matter").labels
    assert (labels.expressed, labels.after, labels.relevance) == (Expressed.NONE, Stance.SUPPORT, 0.0)
    assert labels.trigger is None
    assert labels.sources == set()
    assert set(labels.sides.values()) == {Expressed.NONE}


def test_chances_are_as_asked() -> None:
    chance, (example, *_) = random.Random(0), examples([FLIPS])
    made = [varied(example, chance, 0.25, ["another"], 0.1) for _ in range(4000)]
    counted = Counter(one.request.proposition for one in made)
    assert 300 < counted["another"] < 500
    states = Counter(one.request.state for one in made)
    assert all(150 < states[state] < 350 for state in Stance if state is not Stance.UNKNOWN)
    kept: Example = varied(example, chance, 0.0, [], 1.0)
    assert kept == example


def test_beside_the_contrary_everyone_stands_on_the_other_side() -> None:
    flip = debated()[5]
    made = turned(flip, random.Random(0))
    assert made.request.proposition == "The debate concerning whether dogs should not bark"
    assert (flip.request.state, flip.labels.expressed) == (Stance.SUPPORT, Expressed.OPPOSE)
    assert (made.request.state, made.labels.expressed) == (Stance.OPPOSE, Expressed.SUPPORT)
    assert (flip.labels.after, made.labels.after) == (Stance.OPPOSE, Stance.SUPPORT)
    assert (made.labels.trigger, made.labels.sources) == (flip.labels.trigger, flip.labels.sources)
    assert (flip.labels.sides["1"], made.labels.sides["1"]) == (Expressed.SUPPORT, Expressed.OPPOSE)
    assert turned(made, random.Random(0)) == flip


@pytest.mark.parametrize("place", range(6))
def test_who_takes_no_side_takes_none_of_the_contrary(place: int) -> None:
    example = debated()[place]
    if example.labels.expressed is Expressed.NONE:
        assert turned(example, random.Random(0)).labels.expressed is Expressed.NONE


def test_a_bare_statement_keeps_the_labels() -> None:
    made = stated(debated()[5])
    assert made.request.proposition == "dogs should bark"
    assert made.labels == debated()[5].labels


@pytest.mark.parametrize("side", Expressed)
def test_a_declaration_is_all_that_is_labelled(side: Expressed) -> None:
    made = declared(debated()[5], side, random.Random(1))
    assert made.request.turn.text != debated()[5].request.turn.text
    assert (made.request.turn.reply_to, made.request.turn.media) == (None, ())
    after = Stance.SUPPORT if side is Expressed.NONE else Stance(side.value)
    assert (made.labels.expressed, made.labels.after) == (side, after)
    assert (made.labels.emotion, made.labels.trigger, made.labels.sources) == (None, None, set())
    assert made.labels.sides == {**debated()[5].labels.sides, made.request.turn.turn: side}


def test_what_moved_the_holder_is_never_left_out() -> None:
    flip = debated()[5]
    assert [turn.turn for turn in thinned(flip, random.Random(0), 1.0).request.window] == ["4"]
    assert thinned(flip, random.Random(0), 0.0) == flip


def sides(example: Example) -> list[str | None]:
    """Of the window's turns, one after the other."""
    return [turn.sides.get(example.request.target) for turn in example.request.window]


def test_a_foreign_proposition_finds_no_sides_and_the_contrary_finds_the_other_ones() -> None:
    flip = debated()[5]
    assert sides(flip) == [None, "support", None, None, None]
    assert sides(beside(flip, "another matter")) == [None] * 5
    assert sides(turned(flip, random.Random(0))) == [None, "oppose", None, None, None]


def test_earlier_turns_are_misread_as_often_as_asked() -> None:
    flip, chance = debated()[5], random.Random(0)
    heard = Counter(sides(misread(flip, chance, 0.5, 0.0))[1] for _ in range(3000))
    assert 1900 < heard["support"] < 2100
    assert all(420 < heard[side] < 580 for side in ("oppose", None))
    unread = Counter(sides(misread(flip, chance, 0.0, 0.15))[1] for _ in range(3000))
    assert 390 < unread[None] < 510
    made = misread(flip, chance, 1.0, 0.0)
    assert made.labels == flip.labels
    assert [turn.text for turn in made.request.window] == [turn.text for turn in flip.request.window]
    assert misread(flip, chance, 0.0, 0.0) == flip


def test_nothing_is_reworded_where_nothing_is_asked() -> None:
    for example in debated():
        assert reworded(example, random.Random(0), NOTHING) == example


def test_everything_asked_is_reworded() -> None:
    options = EncoderOptions(turned=1.0, bare=1.0, declared=1.0, thinned=1.0)
    made = reworded(debated()[5], random.Random(0), options)
    assert made.request.proposition == "dogs should not bark"
    assert made.request.window == ()
    assert made.request.turn.text != debated()[5].request.turn.text


def test_hidden_words_are_those_of_turns_and_keep_their_places() -> None:
    featurizer = Featurizer(make_tokenizer())
    (features,) = featurizer([debated()[5].request])
    made = masked(features, random.Random(0), 1.0, featurizer.unknown)
    spoken = {at for part in features.parts for at in range(*part.span)}
    for at, (before, after) in enumerate(zip(features.ids, made.ids, strict=True)):
        assert after == (featurizer.unknown if at in spoken else before)
    assert masked(features, random.Random(0), 0.0, featurizer.unknown) == features
