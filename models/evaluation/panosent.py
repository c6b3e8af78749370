"""PanoSent's metrics (section 6.1, appendix F) over its sextuples and flips, matched within a dialogue.

Where the paper contradicts itself each reading has a name of its own: Flip-Trig is (initial, flipped,
trigger) in section 6.1 and (flipped, trigger) in F.2.3; for elements see `models.evaluation.elements`. Pairs
and sextuples are sets, as elements are. Which pairs there are stands in a table that our copy of the paper
lacks, except for sentiment and rationale (section 6.2); the others are that table's as we know it.
"""

import enum
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from models.datasets.labels import Mention, Opinion, SentimentFlip, SentimentTrigger
from models.evaluation import elements
from models.evaluation.elements import ELEMENTS, Extraction, element, question
from models.evaluation.judge import Question, Verdicts
from models.evaluation.matching import equal_counts, matched, matched_counts
from models.evaluation.measures import Measure, Sums, f1, macro_f1
from models.evaluation.spans import ENOUGH, proportional
from tracker.stances import Sentiment

Fields = tuple[str, ...]

WHOLE: Fields = ("holder", "target", "aspect", "opinion", "sentiment", "rationale")
SUBJECT: Fields = ("holder", "target", "aspect")  # whose sentiment toward what (section 3)
PAIRS: Mapping[str, Fields] = {
    "pair_target_aspect": ("target", "aspect"),
    "pair_holder_opinion": ("holder", "opinion"),
    "pair_sentiment_rationale": ("sentiment", "rationale"),
    "pair_opinion_sentiment": ("opinion", "sentiment"),
}


def questions(extraction: Extraction) -> Iterator[Question]:
    """All that the judge may be asked about a dialogue: what stands for each implicit gold element."""
    for left, right in product(extraction.predicted, extraction.gold):
        for name in ELEMENTS:
            said, gold = element(left, name), element(right, name)
            if said and gold and not gold.explicit:
                yield question(said, gold, extraction.context)


def measures(verdicts: Verdicts) -> tuple[Measure[Extraction], ...]:
    """Every metric of appendix F, by name."""
    return (
        *elements.measures(verdicts),
        Measure("sentiment_macro", lambda found: _sentiments(found, verdicts), macro_f1),
        *(_compound(name, fields, fields, verdicts) for name, fields in PAIRS.items()),
        _compound("sextuple_micro", WHOLE, WHOLE, verdicts),
        _compound("sextuple_identification", ELEMENTS, WHOLE, verdicts),
        Measure("flip", _flips(lambda flip: (flip.before, flip.after)), f1),
        Measure("trigger_macro", _triggers, macro_f1),
        Measure("flip_trigger", _flips(lambda flip: (flip.before, flip.after, flip.trigger)), f1),
        Measure("flipped_sentiment_trigger", _flips(lambda flip: (flip.after, flip.trigger)), f1),
    )


def _compound(name: str, fields: Fields, counted: Fields, verdicts: Verdicts) -> Measure[Extraction]:
    """Pairs or sextuples that agree in `fields`, of those that are distinct in `counted`.

    Identification leaves the sentiment out of the comparison alone: equations 27 and 28 count sextuples.
    """

    def tally(found: Extraction) -> Sums:
        return matched_counts(
            _distinct(found.predicted, counted),
            _distinct(found.gold, counted),
            lambda said, gold: _agree(said, gold, fields, found.context, verdicts),
        )

    return Measure(name, tally, f1)


def _distinct(opinions: Iterable[Opinion], fields: Fields) -> list[Opinion]:
    """One opinion for every combination of the fields; those that lack one are left out."""
    first: dict[Fields, Opinion] = {}
    for opinion in opinions:
        if all(getattr(opinion, name) is not None for name in fields):
            first.setdefault(tuple(_text(opinion, name) for name in fields), opinion)
    return list(first.values())


def _text(opinion: Opinion, name: str) -> str:
    if name == "sentiment":
        return str(opinion.sentiment)
    found = element(opinion, name)
    return found.text if found else ""


def _agree(said: Opinion, gold: Opinion, fields: Fields, context: str, verdicts: Verdicts) -> bool:
    for name in fields:
        if name == "sentiment":
            same = said.sentiment is gold.sentiment
        else:
            same = _same(name, element(said, name), element(gold, name), context, verdicts)
        if not same:
            return False
    return True


def _same(name: str, said: Mention | None, gold: Mention | None, context: str, verdicts: Verdicts) -> bool:
    """Implicit gold by the judge, explicit rationales by overlap (section 6.1), all else exactly."""
    if said is None or gold is None:
        return False
    if not gold.explicit:
        return verdicts.same(question(said, gold, context))
    if name == "rationale":
        return proportional(said.text, gold.text) > ENOUGH
    return said.text == gold.text


def _sentiments(found: Extraction, verdicts: Verdicts) -> Sums:
    """(TP, FP, FN) a class: a sentiment is right where it is that of the same holder, target and aspect."""
    said, gold = (_distinct(side, (*SUBJECT, "sentiment")) for side in (found.predicted, found.gold))
    pairs = matched(
        said,
        gold,
        lambda left, right: _agree(left, right, (*SUBJECT, "sentiment"), found.context, verdicts),
    )
    hits = [gold[right].sentiment for _, right in pairs]
    return _by_class(Sentiment, hits, [one.sentiment for one in said], [one.sentiment for one in gold])


def _triggers(found: Extraction) -> Sums:
    """(TP, FP, FN) a trigger category (equation 31)."""
    said = [flip.trigger for flip in found.predicted_flips]
    gold = [flip.trigger for flip in found.gold_flips]
    hits = [kind for kind in SentimentTrigger for _ in range(min(said.count(kind), gold.count(kind)))]
    return _by_class(SentimentTrigger, hits, said, gold)


def _by_class(
    kinds: type[enum.StrEnum],
    hits: Sequence[Hashable],
    said: Sequence[Hashable],
    gold: Sequence[Hashable],
) -> Sums:
    rows = [(hits.count(kind), said.count(kind), gold.count(kind)) for kind in kinds]
    return np.array([(hit, left - hit, right - hit) for hit, left, right in rows], dtype=np.float64).ravel()


def _flips(part: Callable[[SentimentFlip], Hashable]) -> Callable[[Extraction], Sums]:
    return lambda found: equal_counts(map(part, found.predicted_flips), map(part, found.gold_flips))
