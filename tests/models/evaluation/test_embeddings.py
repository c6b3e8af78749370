from pathlib import Path

import numpy as np
import pytest

from models.evaluation import embeddings
from models.evaluation.embeddings import THRESHOLD, Embedder, judge
from models.evaluation.judge import Field, Question
from models.language.wheels import WeightsUnavailable


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder(device="cpu", threads=1)


def question(predicted: str, gold: str) -> Question:
    return Question(Field.RATIONALE, predicted, gold, "context")


def test_texts_become_unit_vectors_in_order(embedder: Embedder) -> None:
    texts = ["a long text about the plum trees along the pavement of this street", "hm", "hm"]
    found = embedder(texts)
    assert found.shape == (3, 384)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)
    assert np.allclose(found[1], found[2], atol=1e-5)
    assert np.allclose(embedder(texts[:1])[0], found[0], atol=1e-4)


def test_the_same_thing_is_told_from_another_of_the_same_talk(embedder: Embedder) -> None:
    asked = [
        question("the early ferry should be booked", "whether they should book the early ferry"),
        question(
            "The overlay shows the new island as larger, and he admits the old one was smaller.",
            "The overlay shows the new island as larger and Freddie admits the old one was smaller.",
        ),
        question(
            "Cartog's objection to the gate revives Freddie's view of the old map.",
            "The overlay shows the new island as larger and Freddie admits the old one was smaller.",
        ),
        question("关于门店是否应该取消七天无理由退货的讨论", "关于公会是否应该改用DKP积分分配装备的讨论"),
    ]
    made = judge(embedder)
    assert made.same(asked) == [True, True, False, False]
    assert made.name == f"multilingual-e5-small, cosine >= {THRESHOLD:g}"


def test_nothing_is_loaded_before_there_is_something_to_judge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(*_: object) -> None:
        raise WeightsUnavailable("no weights here")

    monkeypatch.setattr(embeddings, "_Loaded", missing)
    made = judge(Embedder(tmp_path))
    assert made.same([]) == []
    with pytest.raises(WeightsUnavailable):
        made.same([question("a", "b")])
