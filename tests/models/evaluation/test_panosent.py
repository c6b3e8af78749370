"""PanoSent's metrics on cases counted by hand."""

import math

import msgspec
import pytest

from models.datasets.labels import Mention, Opinion, SentimentFlip, SentimentTrigger
from models.evaluation.elements import ELEMENTS, Extraction
from models.evaluation.judge import ContainmentJudge, Verdicts
from models.evaluation.panosent import PAIRS, measures, questions
from tracker.stances import Sentiment

POSITIVE, NEGATIVE, NEUTRAL = Sentiment
INFO, ARGUMENT = SentimentTrigger.NEW_INFORMATION, SentimentTrigger.ARGUMENTATION


def explicit(text: str) -> Mention:
    return Mention(text, explicit=True)


def implicit(text: str) -> Mention:
    return Mention(text, explicit=False)


GOLD = Opinion(
    holder="Sophie",
    target=explicit("installation"),
    aspect=explicit("light"),
    opinion=explicit("striking"),
    sentiment=POSITIVE,
    rationale=explicit("creates an ethereal atmosphere"),
)


def said(**changed: object) -> Opinion:
    return msgspec.structs.replace(GOLD, **changed)


def figures(*extractions: Extraction) -> dict[str, float]:
    verdicts = Verdicts(ContainmentJudge(), (asked for one in extractions for asked in questions(one)))
    return {measure.name: measure.of(extractions) for measure in measures(verdicts)}


def one(predicted: list[Opinion], gold: list[Opinion]) -> dict[str, float]:
    return figures(Extraction("Sophie: hi", tuple(predicted), tuple(gold)))


def flip(before: Sentiment, after: Sentiment, trigger: SentimentTrigger | None = INFO) -> SentimentFlip:
    return SentimentFlip(holder="a", target="b", aspect="c", before=before, after=after, trigger=trigger)


def flips(predicted: list[SentimentFlip], gold: list[SentimentFlip]) -> dict[str, float]:
    return figures(Extraction("", (), (), tuple(predicted), tuple(gold)))


def test_a_perfect_extraction() -> None:
    found = one([GOLD], [GOLD])
    for name in (
        *(f"exact_{name}" for name in ELEMENTS),
        *PAIRS,
        "sextuple_micro",
        "sextuple_identification",
    ):
        assert found[name] == 1.0
    assert found["proportional_rationale"] == found["item_rationale"] == found["sentiment_macro"] == 1.0
    assert math.isnan(found["binary_target"])


def test_explicit_elements_match_exactly_or_not() -> None:
    found = one([said(target=explicit("the installation"))], [GOLD])
    assert found["exact_target"] == found["item_target"] == found["pair_target_aspect"] == 0.0
    assert found["pair_holder_opinion"] == 1.0


def test_implicit_elements_are_judged() -> None:
    found = one([said(target=implicit("the installation"))], [said(target=implicit("installation"))])
    assert found["binary_target"] == found["item_target"] == found["sextuple_micro"] == 1.0
    assert math.isnan(found["exact_target"])


def test_an_element_is_the_mean_of_both_kinds() -> None:
    gold = [GOLD, said(target=implicit("hall"))]
    found = one([GOLD, said(target=implicit("door"))], gold)
    assert (found["exact_target"], found["binary_target"], found["item_target"]) == (1.0, 0.0, 0.5)


def test_a_rationale_is_the_mean_of_exact_and_proportional() -> None:
    found = one([said(rationale=explicit("an ethereal atmosphere"))], [GOLD])
    assert found["exact_rationale"] == 0.0
    assert found["proportional_rationale"] == pytest.approx(2 * 1 * 0.75 / 1.75)
    assert found["item_rationale"] == pytest.approx(found["proportional_rationale"] / 2)


@pytest.mark.parametrize(
    ("text", "right"), [("an ethereal atmosphere", 1.0), ("an", 0.0), ("creates an", 1.0)]
)
def test_a_rationale_above_one_half_counts_in_compounds(text: str, right: float) -> None:
    found = one([said(rationale=explicit(text))], [GOLD])
    assert found["sextuple_micro"] == found["pair_sentiment_rationale"] == right


def test_exactly_one_half_is_not_enough() -> None:
    found = one([said(rationale=explicit("a b"))], [said(rationale=explicit("b c"))])
    assert found["sextuple_micro"] == 0.0


def test_identification_leaves_the_sentiment_out() -> None:
    found = one([said(sentiment=NEGATIVE)], [GOLD])
    assert (found["sextuple_micro"], found["sextuple_identification"]) == (0.0, 1.0)


def test_what_stands_twice_counts_once() -> None:
    assert one([GOLD, GOLD], [GOLD])["sextuple_micro"] == 1.0
    assert one([GOLD, said(opinion=explicit("dull"))], [GOLD])["exact_target"] == 1.0


def test_identification_counts_whole_sextuples() -> None:
    found = one([GOLD, said(sentiment=NEGATIVE)], [GOLD])
    assert found["sextuple_identification"] == pytest.approx(2 / 3)


def test_sentiments_by_class() -> None:
    other = said(aspect=explicit("size"), sentiment=NEGATIVE)
    found = one([GOLD, said(aspect=explicit("size"), sentiment=POSITIVE)], [GOLD, other])
    # positive: 1 hit, 1 false alarm: 2/3; negative: 1 miss: 0; neutral does not occur
    assert found["sentiment_macro"] == pytest.approx((2 / 3 + 0) / 2)


def test_incomplete_opinions_are_no_sextuples_but_have_elements() -> None:
    found = one([said(rationale=None)], [GOLD])
    assert (found["sextuple_micro"], found["exact_target"], found["pair_target_aspect"]) == (0.0, 1.0, 1.0)


def test_flips_by_hand() -> None:
    found = flips(
        [flip(NEGATIVE, POSITIVE, INFO), flip(POSITIVE, NEUTRAL, INFO)],
        [flip(NEGATIVE, POSITIVE, INFO), flip(POSITIVE, NEUTRAL, ARGUMENT)],
    )
    assert found["flip"] == 1.0
    assert found["flip_trigger"] == 0.5
    assert found["trigger_macro"] == pytest.approx((2 / 3 + 0) / 2)


def test_the_initial_sentiment_counts_in_section_6_1_only() -> None:
    found = flips([flip(NEUTRAL, POSITIVE)], [flip(NEGATIVE, POSITIVE)])
    assert (found["flip"], found["flip_trigger"], found["flipped_sentiment_trigger"]) == (0.0, 0.0, 1.0)


def test_nothing_and_nothing() -> None:
    assert all(math.isnan(figure) for figure in one([], []).values())
    assert one([], [GOLD])["sextuple_micro"] == one([GOLD], [])["item_rationale"] == 0.0
