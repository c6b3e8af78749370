from pathlib import Path

import pytest

from models.datasets import multiclimate
from models.datasets.files import Malformed, MissingPart
from tests.models.datasets.putting import Put
from tracker.stances import Expressed

ROWS = 'label,text\n0, "A ""title"""\n2,Seas rise\n2,Seas rise\n1,We act\n'


def test_a_sentence_comes_once_with_its_seconds_of_the_video(put: Put) -> None:
    put("dataset/ABC/ABC.mp4", "not really a video")
    put("dataset/ABC/ABC_predicted.csv", "label,text\n1,Not gold\n")
    (dialogue,) = multiclimate.load(put("dataset/ABC/ABC.csv", ROWS))
    assert [(turn.text, turn.label) for turn in dialogue.turns][1:] == [
        ("Seas rise", "oppose"),
        ("We act", "support"),
    ]
    assert [turn.expressed for turn in dialogue.turns] == [
        Expressed.NONE,
        Expressed.OPPOSE,
        Expressed.SUPPORT,
    ]
    assert [(turn.media[0].uri or "").partition("#")[2] for turn in dialogue.turns] == [
        "t=0,5",
        "t=5,15",
        "t=15,20",
    ]


def test_the_sources_own_parts(put: Put, tmp_path: Path) -> None:
    for name in ("ABC", "EFCC", "TICC"):
        put(f"dataset/{name}/{name}.csv", ROWS)
    assert {dialogue.id: dialogue.split for dialogue in multiclimate.load(tmp_path)} == {
        "multiclimate-ABC": "train",
        "multiclimate-EFCC": "dev",
        "multiclimate-TICC": "test",
    }
    assert [dialogue.split for dialogue in multiclimate.load(tmp_path, "test")] == ["test"]


def test_without_the_video_there_is_no_media(put: Put) -> None:
    (dialogue,) = multiclimate.load(put("ABC/ABC.csv", ROWS))
    assert dialogue.turns[0].media == ()


def test_unknown_labels_and_empty_folders_are_errors(put: Put, tmp_path: Path) -> None:
    with pytest.raises(MissingPart):
        list(multiclimate.load(tmp_path))
    with pytest.raises(Malformed):
        list(multiclimate.load(put("ABC/ABC.csv", "label,text\n3,Hm\n")))
