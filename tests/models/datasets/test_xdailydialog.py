from pathlib import Path

import pytest

from models.datasets import xdailydialog
from models.datasets.files import Malformed, MissingPart
from tests.models.datasets.putting import Put
from tracker.stances import Emotion

DEV = ("Tea ? __eou__ No ! __eou__\t1\t2 1\t0 1\n", "茶？__eou__不！__eou__\t1\t2 1\t0 1\n")


def _sample(put: Put, english: str, chinese: str, acts: str, emotions: str) -> Path:
    base = "1k_part_data/dialogues_"
    put(f"{base}topic.txt", "5\n" * len(acts.splitlines()))
    put(f"{base}text_En.txt", english)
    put(f"{base}text_Zh.txt", chinese)
    put(f"{base}action.txt", acts)
    return put(f"{base}emotion.txt", emotions)


def _human(put: Put, part: str, english: str = DEV[0], chinese: str = DEV[1]) -> Path:
    put(f"en_{part}_human.txt", english)
    return put(f"zh_{part}_human.txt", chinese)


def test_both_languages_with_emotion_act_and_topic(put: Put) -> None:
    english, chinese = xdailydialog.load(_human(put, "dev"), "dev")
    assert [turn.text for turn in english.turns] == ["Tea ?", "No !"]
    assert [turn.text for turn in chinese.turns] == ["茶？", "不！"]
    assert [turn.emotion for turn in chinese.turns] == [Emotion.NEUTRAL, Emotion.ANGER]
    assert [turn.acts for turn in english.turns] == [("question",), ("inform",)]
    assert (english.domain, english.group) == ("ordinary life", chinese.group)
    assert [turn.speaker for turn in english.turns] == ["A", "B"]


def test_the_sample_has_no_mark_at_the_end_and_files_side_by_side(put: Put) -> None:
    root = _sample(put, "Hi\u2028you __eou__ Hey\nBye\n", "嗨 __eou__ 嘿\n再见\n", "1 1\n1\n", "4 0\n5\n")
    dialogues = list(xdailydialog.load(root, "train"))
    assert [[turn.text for turn in d.turns] for d in dialogues] == [
        ["Hi\u2028you", "Hey"],
        ["嗨", "嘿"],
        ["Bye"],
        ["再见"],
    ]


def test_labels_of_another_number_than_the_turns_are_no_ones(put: Put) -> None:
    english, _ = xdailydialog.load(_sample(put, "Hi __eou__ Hey\n", "嗨 __eou__ 嘿\n", "1 1 1\n", "4 0 0\n"))
    assert [(turn.emotion, turn.acts) for turn in english.turns] == [(None, ()), (None, ())]


def test_what_judges_is_not_taught(put: Put) -> None:
    _sample(put, "Tea? __eou__ No!\nOther\n", "茶 __eou__ 不\n别\n", "2 1\n1\n", "0 0\n0\n")
    _human(put, "dev")
    root = _human(put, "test")
    assert [d.split for d in xdailydialog.load(root)] == ["test", "test", "train", "train"]
    assert list(xdailydialog.load(root, "dev")) == []
    assert {d.turns[0].text for d in xdailydialog.load(root, "train")} == {"Other", "别"}


def test_a_part_that_is_not_there_is_an_error(put: Put, tmp_path: Path) -> None:
    root = _human(put, "dev")
    for path, split in ((root, "train"), (root, "test"), (tmp_path / "none", None)):
        with pytest.raises(MissingPart):
            list(xdailydialog.load(path, split))


@pytest.mark.parametrize(
    "line",
    [
        "Tea ?\t1\t2\n",
        "Tea ? __eou__\tx\t2\t0\n",
        "Tea ? __eou__\t1\t2\ta\n",
        "Tea ? __eou__\t11\t2\t0\n",
        "Tea ? __eou__\t1\t0\t0\n",
        "Tea ? __eou__\t1\t2\t7\n",
        DEV[0] + DEV[0],  # more lines than its translation
    ],
)
def test_another_form_is_malformed(put: Put, line: str) -> None:
    with pytest.raises(Malformed):
        list(xdailydialog.load(_human(put, "dev", line)))
