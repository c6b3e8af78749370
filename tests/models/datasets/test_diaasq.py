from typing import Any

import pytest

from models.datasets import diaasq
from models.datasets.dialogue import Dialogue
from models.datasets.files import Malformed
from models.datasets.labels import Mention
from tests.models.datasets.putting import Put
from tracker.stances import Sentiment

ZH: dict[str, Any] = {
    **{
        "doc_id": "0007",
        "sentences": ["我 的 k 40 不 错 [ 笑 cry ]", "Redmi Pro 屏 幕 一 般"],
        "replies": [-1, 0],
    },
    **{"speakers": [3, 5], "triplets": [[2, 4, -1, -1, 4, 6, "pos", "k40", "", "不错"]]},
}


def _load(put: Put, raw: dict[str, Any], language: str = "zh") -> list[Dialogue]:
    return list(diaasq.load(put(f"jsons_{language}/valid.json", [raw]), "dev"))


def test_chinese_is_put_together_as_people_type_it(put: Put) -> None:
    (dialogue,) = _load(put, ZH)
    assert [turn.text for turn in dialogue.turns] == ["我的k40不错[笑cry]", "Redmi Pro屏幕一般"]
    assert [(turn.speaker, turn.reply_to) for turn in dialogue.turns] == [("u3", None), ("u5", 0)]


def test_token_offsets_over_the_dialogue_become_characters_of_a_turn(put: Put) -> None:
    second = [10, 12, 12, 14, 14, 16, "doubt", "Redmi Pro", "屏幕", "一般"]
    (dialogue,) = _load(put, ZH | {"triplets": [*ZH["triplets"], second]})
    for opinion in dialogue.opinions:
        for mention in (opinion.target, opinion.aspect, opinion.opinion):
            if mention:
                assert dialogue.turns[mention.turn or 0].text[mention.start : mention.end] == mention.text
    first, other = dialogue.opinions
    assert (first.target, first.aspect) == (Mention("k40", 0, 2, 5, True), None)
    assert first.sentiment is Sentiment.POSITIVE
    assert (other.target, other.aspect) == (
        Mention("Redmi Pro", 1, 0, 9, True),
        Mention("屏幕", 1, 9, 11, True),
    )
    assert other.sentiment is Sentiment.NEUTRAL


def test_english_keeps_its_spaces_and_its_group(put: Put) -> None:
    raw = ZH | {"sentences": ["My k 40 is n't bad", "The screen is meh"]}
    triplet = [7, 8, 7, 8, 9, 10, "neg", "screen", "screen", "meh"]
    (dialogue,) = _load(put, raw | {"triplets": [triplet]}, "en")
    assert dialogue.opinions[0].opinion == Mention("meh", 1, 14, 17, True)
    assert dialogue.group == "diaasq-0007"


def test_a_quadruple_comes_once_and_may_be_incomplete(put: Put) -> None:
    triplet = [2, 4, -1, -1, -1, -1, -1, "k40", "", ""]
    (dialogue,) = _load(put, ZH | {"triplets": [triplet, triplet]})
    (opinion,) = dialogue.opinions
    assert (opinion.opinion, opinion.sentiment) == (None, None)


@pytest.mark.parametrize(
    "triplet",
    [
        [2, 4, -1, -1, 4, 6, "good", "", "", ""],
        [8, 12, -1, -1, 4, 6, "pos", "", "", ""],  # over the end of a turn
        [2, 4, -1, -1, 40, 41, "pos", "", "", ""],
        [4, 4, -1, -1, 4, 6, "pos", "", "", ""],
    ],
)
def test_another_form_is_malformed(put: Put, triplet: list[Any]) -> None:
    with pytest.raises(Malformed, match="0007"):
        _load(put, ZH | {"triplets": [triplet]})
