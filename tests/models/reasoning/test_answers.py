import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.reasoning import answers
from models.reasoning.answers import Verdict
from tracker.records import MAX_PROPOSITION_BYTES
from tracker.stances import Emotion, Expressed, Sentiment, TriggerKind

YES, NO = (1.0, 0.0), (0.0, 1.0)


def test_every_label_has_a_word_of_its_own() -> None:
    assert len(answers.FEELINGS) == len(Emotion) * len(Sentiment)
    assert answers.FEELINGS["joy, negative"].emotion is Emotion.JOY
    assert set(answers.KINDS.values()) == set(TriggerKind)
    assert list(answers.EXPRESSED.values()) == list(Expressed)


def test_the_likeliest_and_its_share() -> None:
    assert answers.likeliest("abc", [0.2, 0.5, 0.3]) == ("b", 0.5)
    assert answers.likeliest("abc", [1 / 3] * 3) == ("a", 0.333333)


@pytest.mark.parametrize("failed", [(), ("target",), ("stance",), ("evidence",), ("target", "evidence")])
def test_a_verdict_names_the_criteria_that_were_denied(failed: tuple[str, ...]) -> None:
    said = answers.verdict([NO if name in failed else YES for name in ("target", "stance", "evidence")])
    assert said == Verdict(**{name: name not in failed for name in ("target", "stance", "evidence")})
    assert said.failed == failed
    assert said.passed is not bool(failed)


def test_a_critic_that_cannot_decide_denies_nothing() -> None:
    assert answers.verdict([(0.5, 0.5)] * 3).passed


@given(st.lists(st.floats(0.001, 1), min_size=4, max_size=4))
def test_shares_are_a_distribution_over_what_is_expressed(weights: list[float]) -> None:
    shares = [weight / sum(weights) for weight in weights]
    said = answers.probabilities(shares)
    assert [said[label] for label in Expressed] == pytest.approx(shares, abs=1e-6)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("Tom named the vet.", "Tom named the vet."),
        ("Rationale: one. two!\nthree.", "one. two!"),
        ("\n  It is 3.5 degrees\n warm. So. There", "It is 3.5 degrees warm. So."),
        ("她提到兽医。他被说服了。还有。", "她提到兽医。 他被说服了。"),
        ("no end", "no end"),
        ("  \n ", ""),
        ("", ""),
    ],
)
def test_a_rationale_is_one_or_two_sentences(answer: str, found: str) -> None:
    assert answers.rationale(answer) == found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("The debate concerning whether x", "The debate concerning whether x"),
        ('\n Topic: "The debate concerning whether x"\nBecause y.', "The debate concerning whether x"),
        ("**Target:** whether x", "whether x"),
        ("  \n", None),
        ('""', None),
        ("Proposition:", None),
        ("x" * (MAX_PROPOSITION_BYTES + 1), None),
    ],
)
def test_a_proposition_is_the_first_line_that_says_something(answer: str, found: str | None) -> None:
    assert answers.proposition(answer) == found


@given(st.text())
def test_no_answer_breaks_anything(answer: str) -> None:
    found = answers.proposition(answer)
    assert found is None or (found.strip() and "\n" not in found)
    assert "\n" not in answers.rationale(answer)
