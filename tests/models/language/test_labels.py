from collections.abc import Mapping

import pytest
import torch

from models.language.backbone import Backbone
from models.language.labels import EMOTION, EXPRESSED, SENTIMENT, TRIGGER, Slot, Tree, source
from models.language.prefix import blank, extend
from tracker.stances import Emotion, Expressed, Sentiment, TriggerKind

ALL = (EXPRESSED, EMOTION, SENTIMENT, TRIGGER, source(13))


def one_by_one(backbone: Backbone, prompt: list[int], slot: Slot) -> torch.Tensor:
    """The naive way: the whole prompt read again for every label, which parts from the others."""
    lines = [backbone.encode(slot.answer(label)) for label in slot.words]
    scores = []
    for line in lines:
        logits = backbone.model(torch.tensor([prompt + line])).logits[0].double()
        score = torch.zeros((), dtype=torch.double)
        for at in range(1, len(line)):
            choices = sorted({other[at] for other in lines if other[:at] == line[:at]})
            shares = logits[len(prompt) + at - 1, choices].log_softmax(-1)
            score = score + shares[choices.index(line[at])]
        scores.append(score)
    return torch.stack(scores)


def test_one_pass_over_the_tree_says_what_reading_each_label_apart_says(tiny: Backbone) -> None:
    prompt, tree = tiny.encode("Some prompt about a dog.\n"), Tree(ALL, tiny.encode)
    with torch.inference_mode():
        scores = tree.scores(extend(tiny.model, blank(tiny.model, 1), [prompt], tree))
        for slot in ALL:
            torch.testing.assert_close(
                scores[slot.cue][0].double(), one_by_one(tiny, prompt, slot), atol=1e-4, rtol=1e-4
            )


def test_a_slots_shares_sum_to_one_without_being_made_to(tiny: Backbone) -> None:
    tree = Tree(ALL, tiny.encode)
    with torch.inference_mode():
        scores = tree.scores(extend(tiny.model, blank(tiny.model, 2), [[5, 6], [7]], tree))
    for slot in ALL:
        torch.testing.assert_close(scores[slot.cue].exp().sum(-1), torch.ones(2))


@pytest.mark.parametrize(
    ("slot", "labels"),
    [(EXPRESSED, Expressed), (EMOTION, Emotion), (SENTIMENT, Sentiment), (TRIGGER, TriggerKind)],
)
def test_every_label_has_a_word(slot: Slot, labels: type) -> None:
    assert list(slot.words) == list(labels)
    assert len(set(slot.words.values())) == len(slot.words)


def test_a_slot_of_one_label_is_certain(tiny: Backbone) -> None:
    tree = Tree([source(1)], tiny.encode)
    assert tree.forks == []
    assert tree.scores(torch.zeros(3, 0, 8))["Source"].tolist() == [[0.0]] * 3


@pytest.mark.parametrize("words", [{"a": "x", "b": "x"}, {"a": "no", "b": "now"}])
def test_labels_that_begin_with_one_another_are_refused(words: Mapping[str, str]) -> None:
    with pytest.raises(ValueError, match="Answer: this tokenizer lets one label begin with another"):
        Tree([Slot("Answer", words)], lambda text: list(text.encode()))
