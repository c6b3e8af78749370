import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from models.datasets import benchmark
from models.datasets.files import Malformed, MissingPart
from tests.models.datasets.putting import Put
from tracker.records import Media, Modality
from tracker.stances import Emotion, Expressed, Sentiment, Stance, TriggerKind

LABELS = {
    "emotion": "neutral",
    "sentiment": "neutral",
    "expressed": "none",
    "stance": "unknown",
    "flip": False,
}


def _line(**fields: Any) -> dict[str, Any]:
    turns = [
        {"i": 0, "speaker": "Ana", "text": "Trams?", "reply_to": None, "media": None, **LABELS},
        {
            **{"i": 1, "speaker": "Bo", "text": "", "reply_to": 0, **LABELS},
            "media": {"modality": "meme", "description": "A tram that is on fire"},
            **{"emotion": "anger", "flip": True, "stance": "oppose", "expressed": "oppose"},
            **{"trigger": "factual_logical", "trigger_turns": [0], "rationale": "The fire."},
        },
    ]
    line = {"id": "x-1", "language": "en", "split": "dev", "domain": "Town", "register": "forum"}
    return {**line, "proposition": "Whether trams", "speakers": ["Ana", "Bo"], "turns": turns, **fields}


def test_every_label_is_read(put: Put) -> None:
    (dialogue,) = benchmark.load(put("en.jsonl", _line()))
    assert (dialogue.id, dialogue.split, dialogue.register, dialogue.domain) == (
        "x-1",
        "dev",
        "forum",
        "Town",
    )
    turn = dialogue.turns[1]
    assert turn.media == (Media(Modality.MEME, description="A tram that is on fire"),)
    assert (turn.emotion, turn.sentiment) == (Emotion.ANGER, Sentiment.NEUTRAL)
    assert (turn.expressed, turn.stance, turn.flip) == (Expressed.OPPOSE, Stance.OPPOSE, True)
    assert (turn.trigger, turn.trigger_turns) == (TriggerKind.FACTUAL_LOGICAL, (0,))
    assert (turn.reply_to, turn.rationale) == (0, "The fire.")


def test_a_folder_or_a_file_gzipped_or_not(put: Put, tmp_path: Path) -> None:
    put("en.jsonl", _line())
    (tmp_path / "zh.jsonl.gz").write_bytes(gzip.compress(json.dumps(_line(id="x-2", split="test")).encode()))
    assert [d.id for d in benchmark.load(tmp_path)] == ["x-1", "x-2"]
    assert [d.id for d in benchmark.load(tmp_path, "test")] == ["x-2"]
    assert [d.id for d in benchmark.load(tmp_path / "en.jsonl")] == ["x-1"]


def test_what_was_kept_back_names_no_part_and_only_judges(put: Put) -> None:
    line = _line()
    del line["split"]
    (dialogue,) = benchmark.load(put("xx.jsonl", line), "test")
    assert dialogue.split == "test"


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingPart):
        list(benchmark.load(tmp_path))


@pytest.mark.parametrize(
    "fields", [{"speakers": ["Ana"]}, {"turns": _line()["turns"][1:]}, {"turns": [{"i": 0}]}, {"id": 3}]
)
def test_a_line_of_another_form_is_malformed(put: Put, fields: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        list(benchmark.load(put("en.jsonl", _line(**fields))))
