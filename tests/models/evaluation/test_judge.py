from collections.abc import Sequence

import pytest

from models.evaluation.judge import ContainmentJudge, EmbeddingJudge, Field, Question, Verdicts, contained


def question(predicted: str, gold: str) -> Question:
    return Question(Field.TARGET, predicted, gold, "context")


@pytest.mark.parametrize(
    ("predicted", "gold", "same"),
    [
        ("nuclear power", "Nuclear power is safe ", True),
        ("the safety of trams", "trams", True),
        ("trams", "trains", False),
        ("", "trams", False),
        ("", "", False),
        ("核电", "关于核电是否安全的讨论", True),
    ],
)
def test_containment(predicted: str, gold: str, same: bool) -> None:
    assert contained(predicted, gold) is same
    assert ContainmentJudge().same([question(predicted, gold)]) == [same]


class Letters:
    """Texts as counts of letters; remembers what it was asked."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.encoded += texts
        return [[float(text.count(letter)) for letter in "ab"] for text in texts]


def test_embeddings_are_compared_by_cosine() -> None:
    encode = Letters()
    judge = EmbeddingJudge(encode, threshold=0.9, encoder="letters")
    asked = [question("aa", "a"), question("a", "b"), question("ab", "aab"), question("zz", "a")]
    assert judge.same(asked) == [True, False, True, False]
    assert len(encode.encoded) == len(set(encode.encoded))
    assert judge.name == "letters, cosine >= 0.9"


def test_no_question_encodes_nothing() -> None:
    encode = Letters()
    assert EmbeddingJudge(encode, 0.5).same([]) == []
    assert encode.encoded == []


class Counting(ContainmentJudge):
    def __init__(self) -> None:
        self.asked: list[Question] = []

    def same(self, questions: Sequence[Question]) -> list[bool]:
        self.asked += questions
        return super().same(questions)


def test_equal_texts_are_not_asked_and_no_question_twice() -> None:
    judge = Counting()
    verdicts = Verdicts(judge, [question("a", "A "), question("a", "ab"), question("a", "ab")])
    assert judge.asked == [question("a", "ab")]
    assert verdicts.same(question("a", "A "))
    assert verdicts.same(question("a", "ab"))
    with pytest.raises(KeyError):
        verdicts.same(question("x", "y"))
