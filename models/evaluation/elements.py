"""PanoSent's element-wise metrics (section 6.1, appendix F.1.1): terms of a dialogue, by kind of match.

As in DiaASQ, which section 6.1 follows, terms are sets: one that stands twice in a dialogue counts once.
`item_*` is F.1.1's average of the exact F1 and the "relevant" one; section 6.1 names one match a kind of
element: `exact_*` (explicit), `binary_*` (implicit) and `proportional_rationale` (explicit rationales).
"""

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from models.datasets.labels import Mention, Opinion, SentimentFlip
from models.evaluation.judge import Field, Question, Verdicts
from models.evaluation.matching import equal_counts, matched_counts
from models.evaluation.measures import Measure, Sums, f1, macro_f1, mean_defined
from models.evaluation.spans import proportional_counts, proportional_f1

SPANS = ("holder", "target", "aspect", "opinion")
ELEMENTS = (*SPANS, "rationale")


class Extraction(msgspec.Struct, frozen=True):
    """What was predicted for a dialogue, and what is gold; `context` is its text, for the judge."""

    context: str
    predicted: tuple[Opinion, ...]
    gold: tuple[Opinion, ...]
    predicted_flips: tuple[SentimentFlip, ...] = ()
    gold_flips: tuple[SentimentFlip, ...] = ()


def element(opinion: Opinion, name: str) -> Mention | None:
    """One element's text, and whether it is explicit; a holder's name always is."""
    found = getattr(opinion, name)
    if found is None:
        return None
    if isinstance(found, str):
        return Mention(found.strip(), explicit=True)
    return Mention(found.text.strip(), explicit=found.explicit is not False)


def question(said: Mention, gold: Mention, context: str) -> Question:
    """Whether an implicit element means the gold one."""
    return Question(Field.TERM, said.text, gold.text, context)


def measures(verdicts: Verdicts) -> Iterator[Measure[Extraction]]:
    """Every element-wise metric, by name."""
    for name in ELEMENTS:
        yield _exact_f1(name)
        yield _binary_f1(name, verdicts)
    yield Measure("proportional_rationale", _proportional, proportional_f1)
    for name in SPANS:
        yield _item(name, verdicts)
    yield _item_rationale(verdicts)


def _exact_f1(name: str) -> Measure[Extraction]:
    return Measure(f"exact_{name}", lambda found: _exact(found, name), f1)


def _binary_f1(name: str, verdicts: Verdicts) -> Measure[Extraction]:
    return Measure(f"binary_{name}", lambda found: _binary(found, name, verdicts), f1)


def _item(name: str, verdicts: Verdicts) -> Measure[Extraction]:
    """The mean of exact F1 over explicit and binary F1 over implicit terms, as far as they are defined."""

    def tally(found: Extraction) -> Sums:
        return np.concatenate([_exact(found, name), _binary(found, name, verdicts)])

    return Measure(f"item_{name}", tally, macro_f1)


def _item_rationale(verdicts: Verdicts) -> Measure[Extraction]:
    """Exact and proportional F1 of explicit rationales, binary F1 of implicit ones, as far as defined."""

    def tally(found: Extraction) -> Sums:
        binary = _binary(found, "rationale", verdicts)
        return np.concatenate([_exact(found, "rationale"), _proportional(found), binary])

    def value(totals: Sums) -> Sums:
        parts = (f1(totals[..., :3]), proportional_f1(totals[..., 3:7]), f1(totals[..., 7:]))
        return mean_defined(np.stack(parts, axis=-1))

    return Measure("item_rationale", tally, value)


def _terms(opinions: Iterable[Opinion], name: str, *, explicit: bool) -> list[Mention]:
    found = (element(opinion, name) for opinion in opinions)
    return list(dict.fromkeys(term for term in found if term and term.explicit is explicit))


def _exact(found: Extraction, name: str) -> Sums:
    """Equations 8 to 10."""
    said, gold = (_terms(side, name, explicit=True) for side in (found.predicted, found.gold))
    return equal_counts(said, gold)


def _binary(found: Extraction, name: str, verdicts: Verdicts) -> Sums:
    """Equations 11 to 13."""
    said, gold = (_terms(side, name, explicit=False) for side in (found.predicted, found.gold))
    return matched_counts(said, gold, lambda left, right: verdicts.same(question(left, right, found.context)))


def _proportional(found: Extraction) -> Sums:
    """Equations 14 to 16."""
    said, gold = (_terms(side, "rationale", explicit=True) for side in (found.predicted, found.gold))
    return proportional_counts([term.text for term in said], [term.text for term in gold])
