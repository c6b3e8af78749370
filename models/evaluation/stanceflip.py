"""StanceFlip's metrics (section 5.1, appendix D.4), to the letter where its parts agree.

Where they do not, each reading has a name of its own: Identification F1 is (Holder, Target, Stance, Flip) in
section 5.1 and (Holder, Target, Rationale) in D.4; Flip-Trig is (initial, flipped, trigger) in D.4's equation
11 and "flipped stance with trigger" in section 5.1. Sextuples of one turn are compared with each other; where
turns are not given, those of one dialogue are matched one to one. Flips are compared within a dialogue, since
equation 11 names neither turn nor holder: `models.evaluation.live` does.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

import msgspec

from models.evaluation import normalisation
from models.evaluation.judge import Field, Question, Verdicts
from models.evaluation.matching import equal_counts, matched_counts
from models.evaluation.measures import Measure, Sums, f1


class Sextuple(msgspec.Struct, frozen=True, kw_only=True):
    """One turn's (h, g, e, s, st, r), with whether it flips; what is not given is None.

    Labels are those of `tracker.stances`, or the words of a model that named none of them.
    """

    holder: str
    target: str | None = None
    emotion: str | None = None
    sentiment: str | None = None
    stance: str | None = None
    rationale: str | None = None
    flip: bool | None = None
    turn: int | None = None


class Flip(msgspec.Struct, frozen=True):
    """Equation 11's tuple: initial stance, flipped stance, causal trigger."""

    before: str
    after: str
    trigger: str | None


class Extraction(msgspec.Struct, frozen=True):
    """What was predicted for a dialogue, and what is gold; `context` is its text, for the judge."""

    context: str
    predicted: tuple[Sextuple, ...]
    gold: tuple[Sextuple, ...]
    predicted_flips: tuple[Flip, ...] = ()
    gold_flips: tuple[Flip, ...] = ()


Fields = tuple[str, ...]

PROJECTIONS: Mapping[str, Fields] = {
    "item_holder": ("holder",),
    "item_target": ("target",),
    "item_emotion": ("emotion",),
    "item_sentiment": ("sentiment",),
    "item_stance": ("stance",),
    "item_rationale": ("rationale",),
    "pair_target_emotion": ("target", "emotion"),
    "pair_target_sentiment": ("target", "sentiment"),
    "pair_target_stance": ("target", "stance"),
    "pair_stance_rationale": ("stance", "rationale"),
    "sextuple_micro": ("holder", "target", "emotion", "sentiment", "stance", "rationale"),
    "identification_holder_target_stance_flip": ("holder", "target", "stance", "flip"),
    "identification_holder_target_rationale": ("holder", "target", "rationale"),
}
JUDGED = {"target": Field.TARGET, "rationale": Field.RATIONALE}


def questions(extraction: Extraction) -> Iterator[Question]:
    """All that the judge may be asked about a dialogue."""
    for left in extraction.predicted:
        for right in extraction.gold:
            if _aligned(left, right):
                yield from _questions(left, right, JUDGED, extraction.context)


def measures(verdicts: Verdicts) -> tuple[Measure[Extraction], ...]:
    """Every metric of section 5.1, by name."""
    subtask_1 = [_projected(name, fields, verdicts) for name, fields in PROJECTIONS.items()]
    return (
        *subtask_1,
        Measure("flip", _flip, f1),
        Measure("trigger", _trigger, f1),
        Measure("flip_trigger", _flip_trigger, f1),
        Measure("flipped_stance_trigger", _flipped_trigger, f1),
    )


def _projected(name: str, fields: Fields, verdicts: Verdicts) -> Measure[Extraction]:
    def tally(extraction: Extraction) -> Sums:
        def same(left: Sextuple, right: Sextuple) -> bool:
            return _aligned(left, right) and _agree(left, right, fields, extraction.context, verdicts)

        return matched_counts(*_given(extraction, fields), same)

    return Measure(name, tally, f1)


def _given(extraction: Extraction, fields: Fields) -> tuple[list[Sextuple], list[Sextuple]]:
    """Predictions and gold that have all the fields.

    A prediction for a turn whose gold lacks one is left out: nobody can say whether it is right.
    """
    gold = [right for right in extraction.gold if _complete(right, fields)]
    unlabelled = {right.turn for right in extraction.gold} - {right.turn for right in gold} - {None}
    said = [left for left in extraction.predicted if _complete(left, fields) and left.turn not in unlabelled]
    return said, gold


def _complete(sextuple: Sextuple, fields: Fields) -> bool:
    return all(getattr(sextuple, name) is not None for name in fields)


def _aligned(left: Sextuple, right: Sextuple) -> bool:
    return left.turn is None or right.turn is None or left.turn == right.turn


def _agree(left: Sextuple, right: Sextuple, fields: Fields, context: str, verdicts: Verdicts) -> bool:
    for name in fields:
        if name == "holder":
            same = normalisation.holder(left.holder) == normalisation.holder(right.holder)
        elif name in JUDGED:
            same = all(verdicts.same(asked) for asked in _questions(left, right, [name], context))
        else:
            same = getattr(left, name) == getattr(right, name)
        if not same:
            return False
    return True


def _questions(left: Sextuple, right: Sextuple, names: Iterable[str], context: str) -> Iterator[Question]:
    for name in names:
        said, gold = getattr(left, name), getattr(right, name)
        if said is not None and gold is not None:
            yield Question(
                JUDGED[name], normalisation.normalised(said), normalisation.normalised(gold), context
            )


def _flip(extraction: Extraction) -> Sums:
    return _compared(extraction, lambda flip: (flip.before, flip.after))


def _trigger(extraction: Extraction) -> Sums:
    return _compared(extraction, lambda flip: flip.trigger)


def _flip_trigger(extraction: Extraction) -> Sums:
    return _compared(extraction, lambda flip: flip if flip.trigger else None)


def _flipped_trigger(extraction: Extraction) -> Sums:
    return _compared(extraction, lambda flip: (flip.after, flip.trigger) if flip.trigger else None)


def _compared(extraction: Extraction, part: Callable[[Flip], Hashable | None]) -> Sums:
    """A flip without the part is neither predicted nor gold."""
    return equal_counts(_parts(extraction.predicted_flips, part), _parts(extraction.gold_flips, part))


def _parts(flips: Sequence[Flip], part: Callable[[Flip], Hashable | None]) -> list[Hashable]:
    return [found for flip in flips if (found := part(flip)) is not None]
