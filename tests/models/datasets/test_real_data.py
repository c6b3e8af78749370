"""Every loader over the published files, where they are: VOLTEFACE_DATA names the folder that holds them."""

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from models.datasets import registry
from models.datasets.dialogue import Dialogue

ROOT = Path(os.environ.get("VOLTEFACE_DATA") or Path(__file__).parents[4] / "shared" / "data")
FOLDERS = {"benchmark": "../benchmark", "ravdess": "media/ravdess-mini"}
FOLDERS |= {name: f"media/{name}" for name in ("climatememes", "multiclimate")}


class Expected(NamedTuple):
    """What a source's published part holds."""

    dialogues: int
    turns: int
    parts: set[str]
    languages: set[str]


ALL = {"train", "dev", "test"}
TAUGHT = {"train", "dev"}
EXPECTED = {
    "benchmark": Expected(3436, 29480, ALL, {"en", "zh", "es"}),
    "mt-csd": Expected(6473, 32084, ALL, {"en"}),
    "c-mtcsd": Expected(12990, 39896, TAUGHT, {"zh"}),
    "zs-csd": Expected(2575, 10193, {"dev"}, {"zh"}),
    "panosent": Expected(4036, 19406, ALL, {"en"}),
    "persuasionforgood": Expected(200, 4101, ALL, {"en"}),
    "meld": Expected(1152, 11098, TAUGHT, {"en"}),
    "meld-fr": Expected(929, 9727, TAUGHT, {"en"}),
    "reccon": Expected(881, 8699, TAUGHT, {"en"}),
    "diaasq": Expected(1000, 7443, TAUGHT, {"en", "zh"}),
    "xdailydialog": Expected(5846, 45166, ALL, {"en", "zh"}),
    "climatememes": Expected(45, 45, ALL, {"en"}),
    "multiclimate": Expected(2, 17, {"train"}, {"en"}),
    "ravdess": Expected(8, 8, {"train"}, {"en"}),
}


def _load(name: str) -> list[Dialogue]:
    folder = ROOT / FOLDERS.get(name, name)
    if not folder.is_dir():
        pytest.skip(
            f"NOT CHECKED: {folder} is not here, so the {name} loader met none of its source's real files"
        )
    return list(registry.load(name, folder))


def test_every_source_is_expected() -> None:
    assert EXPECTED.keys() == registry.SOURCES.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_counts_parts_and_form(name: str) -> None:
    dialogues = _load(name)
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    found = Expected(
        len(dialogues), len(turns), {d.split or "" for d in dialogues}, {d.language for d in dialogues}
    )
    assert found == EXPECTED[name]
    assert len({dialogue.id for dialogue in dialogues}) == len(dialogues)
    for dialogue in dialogues:
        assert [turn.index for turn in dialogue.turns] == list(range(len(dialogue.turns)))
        assert all(turn.text.strip() or turn.media for turn in dialogue.turns)
        assert all(turn.reply_to is None or turn.reply_to < turn.index for turn in dialogue.turns)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_labels_that_the_registry_promises_are_filled(name: str) -> None:
    dialogues = _load(name)
    for label in registry.source(name).labels:
        owners: list[object] = [*dialogues, *(turn for dialogue in dialogues for turn in dialogue.turns)]
        assert any(getattr(owner, label, None) for owner in owners), label


@pytest.mark.parametrize("name", EXPECTED)
def test_no_group_is_in_two_parts(name: str) -> None:
    parts: dict[str, set[str | None]] = {}
    for dialogue in _load(name):
        if dialogue.group:
            parts.setdefault(dialogue.group, set()).add(dialogue.split)
    assert {group for group, found in parts.items() if len(found) > 1} == set()


def test_stance_words() -> None:
    words = {
        "mt-csd": {"favor": 1631, "against": 1486, "none": 3356},
        "c-mtcsd": {"favor": 5477, "against": 4287, "none": 3226},
        "zs-csd": {"favor": 774, "against": 895, "neutral": 906},
        "climatememes": {"convinced": 18, "skeptical": 16, "neither": 11},
        "multiclimate": {"support": 7, "oppose": 7, "neutral": 3},
    }
    for name, expected in words.items():
        found = Counter(turn.label for dialogue in _load(name) for turn in dialogue.turns if turn.label)
        assert found == expected


def test_panosent_leaks_no_tag_and_keeps_its_flips() -> None:
    dialogues = _load("panosent")
    texts = [turn.text for dialogue in dialogues for turn in dialogue.turns]
    assert not [text for text in texts if "<" in text or "_0" in text or any(c < " " for c in text)]
    flips = [flip for dialogue in dialogues for flip in dialogue.sentiment_flips]
    assert len(flips) == 1324
    assert sum(flip.trigger is None for flip in flips) == 1
    assert sum(len(dialogue.opinions) for dialogue in dialogues) == 19177


def test_meld_fr_keeps_every_episodes_flip_and_mends_its_text() -> None:
    dialogues = _load("meld-fr")
    # 4,426 episodes, two of them repeated across nests, each with a flip.
    assert sum(len(dialogue.emotion_flips) for dialogue in dialogues) == 4426
    assert sum(len(flip.unmarked) for dialogue in dialogues for flip in dialogue.emotion_flips) == 10
    assert not [
        t for d in dialogues for t in d.turns if any("\x80" <= character <= "\xa0" for character in t.text)
    ]


def test_places_are_in_the_texts() -> None:
    for dialogue in (*_load("diaasq"), *_load("reccon")):
        causes = [cause for turn in dialogue.turns for cause in turn.causes]
        elements = [e for o in dialogue.opinions for e in (o.target, o.aspect, o.opinion) if e is not None]
        for mention in (*causes, *elements):
            assert mention.turn is not None
            assert dialogue.turns[mention.turn].text[mention.start : mention.end] == mention.text
