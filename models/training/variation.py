"""Examples varied by chance, so that what is learned is which side a turn takes, and not a topic's usual one.

Every draw is made whatever the others gave: an example's chance does not depend on its neighbours'.
"""

import dataclasses
import random
from collections.abc import Sequence

import msgspec

from models.encoder.features import Features
from models.training import wording
from models.training.examples import Example, Labels
from models.training.options import EncoderOptions
from tracker.context import WindowTurn
from tracker.stances import Expressed, Stance

_HEARD = (Expressed.SUPPORT, Expressed.OPPOSE, Expressed.NONE)  # one in 20 turns is neutral
_SWAPPED = {"support": "oppose", "oppose": "support"}


def under(example: Example, state: Stance) -> Example:
    """The example with its holder in another state: what the turn expresses stays what it is."""
    labels, expressed = example.labels, example.labels.expressed
    if expressed is not None:
        after = state if expressed is Expressed.NONE else Stance(expressed.value)
        labels = msgspec.structs.replace(labels, after=after)
    return Example(msgspec.structs.replace(example.request, state=state), labels)


def beside(example: Example, proposition: str) -> Example:
    """The example beside a proposition that it says nothing about: nothing moves, nothing is relevant."""
    labels = Labels(
        expressed=Expressed.NONE,
        after=example.request.state,
        emotion=example.labels.emotion,
        sentiment=example.labels.sentiment,
        relevance=0.0,
        sides=dict.fromkeys(example.labels.sides, Expressed.NONE),
    )
    window = tuple(msgspec.structs.replace(earlier, sides={}) for earlier in example.request.window)
    request = msgspec.structs.replace(example.request, proposition=proposition, window=window)
    return Example(request, labels)


def varied(
    example: Example, chance: random.Random, drawn: float, foreign: Sequence[str], share: float
) -> Example:
    """The example as it is, or, by chance, under a drawn state or beside a `foreign` proposition, or both."""
    redrawn, strange = chance.random() < drawn, chance.random() < share
    state, other = chance.choice(tuple(Stance)), chance.choice(foreign) if foreign else ""
    if redrawn:
        example = under(example, state)
    if strange and other and other != example.request.proposition:
        example = beside(example, other)
    return example


def reworded(example: Example, chance: random.Random, options: EncoderOptions) -> Example:
    """By chance: the proposition turned or bare, the turn a declaration, earlier turns misread or gone.

    A language whose words `wording` does not know only loses turns.
    """
    say, turn, bare, side = (chance.random() for _ in range(4))
    if say < options.declared:
        example = declared(example, list(Expressed)[int(side * len(Expressed))], chance)
    if turn < options.turned:
        example = turned(example, chance)
    if bare < options.bare:
        example = stated(example)
    return misread(thinned(example, chance, options.thinned), chance, options.misread, options.unread)


def turned(example: Example, chance: random.Random) -> Example:
    """The example beside the contrary of its proposition: who supported opposes, and the other way round."""
    request, labels = example.request, example.labels
    proposition = wording.turned(request.proposition, request.turn.language, chance)
    if proposition is None:
        return example
    request = msgspec.structs.replace(
        request,
        proposition=proposition,
        state=Stance(_swapped(request.state) or request.state),
        window=tuple(_turned(earlier) for earlier in request.window),
    )
    expressed, after = _swapped(labels.expressed), _swapped(labels.after)
    labels = msgspec.structs.replace(
        labels,
        expressed=expressed and Expressed(expressed),
        after=after and Stance(after),
        sides={ident: Expressed(_swapped(side) or side) for ident, side in labels.sides.items()},
    )
    return Example(request, labels)


def _turned(earlier: WindowTurn) -> WindowTurn:
    swapped = {target: Expressed(_swapped(side) or side) for target, side in earlier.sides.items()}
    return msgspec.structs.replace(earlier, sides=swapped)


def stated(example: Example) -> Example:
    """The example beside its proposition as a bare statement, as an operator might declare it."""
    request = example.request
    proposition = wording.stated(request.proposition, request.turn.language)
    if proposition is None:
        return example
    return Example(msgspec.structs.replace(request, proposition=proposition), example.labels)


def declared(example: Example, side: Expressed, chance: random.Random) -> Example:
    """The example with a turn in our own words; what an annotator heard in its tone goes with its words."""
    request = example.request
    text = wording.declared(request.proposition, request.turn.language, side, chance)
    if text is None:
        return example
    turn = WindowTurn(request.turn.turn, request.turn.holder, text, None, (), request.turn.language)
    speaks = side is not Expressed.NONE
    labels = Labels(
        expressed=side,
        after=Stance(side.value) if speaks else request.state,
        relevance=1.0 if speaks else None,
        sides={**example.labels.sides, turn.turn: side},
    )
    return Example(msgspec.structs.replace(request, turn=turn), labels)


def thinned(example: Example, chance: random.Random, share: float) -> Example:
    """The example without some earlier turns; those that moved the holder, and the one replied to, stay."""
    request, kept = example.request, {*example.labels.sources, example.request.turn.reply_to}
    drawn = [(chance.random(), earlier) for earlier in request.window]
    window = tuple(earlier for draw, earlier in drawn if draw >= share or earlier.turn in kept)
    return Example(msgspec.structs.replace(request, window=window), example.labels)


def misread(example: Example, chance: random.Random, share: float, unread: float) -> Example:
    """The example with the sides of some earlier turns drawn, or, by `unread`, with none at all.

    In service they are what was read, a quarter of it wrongly; whoever learned beside what an annotator
    said would trust them too much.
    """
    request, none = example.request, chance.random() < unread
    window = []
    for earlier in request.window:
        drawn, side = chance.random() < share, chance.choice(_HEARD)
        took = {} if none or (drawn and side is Expressed.NONE) else {request.target: side}
        window.append(msgspec.structs.replace(earlier, sides=took) if none or drawn else earlier)
    return Example(msgspec.structs.replace(request, window=tuple(window)), example.labels)


def masked(features: Features, chance: random.Random, share: float, mask: int) -> Features:
    """The features with some words of the turns hidden, never of the proposition; all keep their places."""
    words = [at for part in features.parts for at in range(*part.span)]
    hidden = {at for at in words if chance.random() < share}
    ids = tuple(mask if at in hidden else token for at, token in enumerate(features.ids))
    return dataclasses.replace(features, ids=ids)


def _swapped(side: str | None) -> str | None:
    return side and _SWAPPED.get(side, side)
