from pathlib import Path

import pytest

from models.datasets import mt_csd
from models.datasets.files import Malformed, MissingPart
from tests.models.datasets.putting import Put
from tracker.stances import Expressed

TEXTS = 'id,text\r\n7,Trams are coming\r\n7-1,\r\n7-1-2,"Good, at last"\r\n7-3,\r\n'


def _paths(*paths: tuple[list[str], str]) -> list[dict[str, object]]:
    return [{"index": index, "stance": stance} for index, stance in paths]


@pytest.fixture
def root(put: Put) -> Path:
    put("text/Trams.csv", TEXTS)
    paths = _paths((["7"], "none"), (["7", "7-1", "7-1-2"], "favor"), (["7", "7-3"], "against"))
    return put("index_HEAD/Trams/train.json", paths)


def test_the_label_is_the_last_posts_and_the_text_is_looked_up(root: Path) -> None:
    first, second = mt_csd.load(root, "train")
    assert [(turn.text, turn.label) for turn in first.turns] == [("Trams are coming", "none")]
    assert [turn.expressed for turn in second.turns] == [None, Expressed.SUPPORT]
    assert second.proposition == "The debate concerning whether to be in favour of Trams"


def test_removed_posts_are_left_out_of_a_path_and_end_none(root: Path) -> None:
    assert [dialogue.id for dialogue in mt_csd.load(root)] == ["mt-csd-Trams-7", "mt-csd-Trams-7-1-2"]
    last = list(mt_csd.load(root))[-1].turns[-1]
    assert (last.text, last.index, last.reply_to) == ("Good, at last", 1, 0)


def test_no_one_is_taken_for_the_author_of_two_posts(root: Path) -> None:
    for dialogue in mt_csd.load(root):
        assert not dialogue.named
        assert len({turn.speaker for turn in dialogue.turns}) == len(dialogue.turns)
        assert dialogue.group == "mt-csd-Trams-7"


def test_the_chinese_set_has_the_same_form(put: Put) -> None:
    put("data/预制菜.csv", "id,type,text,stance\n3,background,新闻,none\n3-1,comment1,不吃,against\n")
    root = put("预制菜/valid.json", _paths((["3", "3-1"], "against")))
    (dialogue,) = mt_csd.load_chinese(root, "dev")
    assert (dialogue.source, dialogue.language, dialogue.split) == ("c-mtcsd", "zh", "dev")
    assert [turn.expressed for turn in dialogue.turns] == [None, Expressed.OPPOSE]


@pytest.mark.parametrize("path", [(["7", "7-9"], "none"), (["7"], "unsure")])
def test_unknown_posts_and_stances_are_malformed(put: Put, path: tuple[list[str], str]) -> None:
    put("text/Trams.csv", TEXTS)
    with pytest.raises(Malformed):
        list(mt_csd.load(put("index/Trams/test.json", _paths(path)), "test"))


def test_paths_without_texts_are_missing_a_part(put: Put) -> None:
    with pytest.raises(MissingPart, match=r"Trams\.csv"):
        list(mt_csd.load(put("index/Trams/test.json", _paths((["7"], "none")))))
