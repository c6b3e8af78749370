from pathlib import Path

import pytest

from models.datasets import ravdess
from models.datasets.files import Malformed, MissingPart
from tests.models.datasets.putting import Put
from tracker.records import Modality
from tracker.stances import Emotion


def test_the_files_name_says_it_all(put: Put) -> None:
    put("Actor_07/03-01-02-01-01-01-07.wav", "not really a sound")
    root = put("Actor_07/03-01-06-01-02-01-07.wav", "not really a sound")
    calm, fearful = (dialogue.turns[0] for dialogue in ravdess.load(root))
    assert (calm.emotion, calm.label, calm.text) == (Emotion.NEUTRAL, "calm", "Kids are talking by the door")
    assert (fearful.emotion, fearful.text) == (Emotion.FEAR, "Dogs are sitting by the door")
    assert (fearful.speaker, fearful.media[0].modality) == ("actor-07", Modality.AUDIO)


def test_an_actor_is_in_one_part(put: Put) -> None:
    for emotion in range(1, 9):
        root = put(f"Actor_03/03-01-{emotion:02}-01-01-01-03.wav", "x")
    assert len({(dialogue.split, dialogue.group) for dialogue in ravdess.load(root)}) == 1


def test_other_names_are_errors(put: Put, tmp_path: Path) -> None:
    with pytest.raises(MissingPart):
        list(ravdess.load(tmp_path))
    for name in ("03-01-09-01-01-01-03.wav", "03-01-happy.wav"):
        with pytest.raises(Malformed):
            list(ravdess.load(put(f"{name[:8]}/{name}", "x") / name[:8]))
