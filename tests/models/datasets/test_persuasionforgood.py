import json
from typing import Any

from models.datasets import persuasionforgood
from models.datasets.dialogue import Dialogue
from models.datasets.files import part_by_hash
from tests.models.datasets.putting import Put
from tracker.stances import Expressed


def _row(turn: int, persuadee: int, unit: str, label: str, name: str = "d1", **fields: Any) -> dict[str, Any]:
    labels: dict[str, str | None] = {
        "er_label_1": None,
        "ee_label_1": None,
        "er_label_2": None,
        "ee_label_2": None,
    }
    labels["ee_label_1" if persuadee else "er_label_1"] = label
    scores = {"neg": 0.9, "neu": 0.1, "pos": 0}
    return {"None": 0, "B2": name, "B4": persuadee, "Turn": turn, "Unit": unit, **labels, **scores, **fields}


def _load(put: Put, *rows: dict[str, Any]) -> list[Dialogue]:
    lines = "\n".join(map(json.dumps, rows))
    return list(persuasionforgood.load(put("annotated.jsonl", lines)))


def test_sentences_of_one_message_become_one_turn(put: Put) -> None:
    (dialogue,) = _load(
        put,
        _row(0, 0, "Hello.", "greeting"),
        _row(0, 0, "Will you give?", "proposition-of-donation"),
        _row(0, 1, "I will.", "agree-donation", ee_label_2="thank"),
    )
    first, second = dialogue.turns
    assert (first.text, first.speaker) == ("Hello. Will you give?", "persuader")
    assert first.acts == ("greeting", "proposition-of-donation")
    assert (second.acts, second.expressed) == (("agree-donation", "thank"), Expressed.SUPPORT)
    assert second.sentiment is None  # a lexicon's score is no label


def test_only_what_decides_is_a_position(put: Put) -> None:
    (dialogue,) = _load(
        put,
        _row(0, 1, "No.", "disagree-donation"),
        _row(1, 1, "Not more.", "disagree-donation-more"),
        _row(2, 1, "Nice of them!", "positive-reaction-to-donation"),
        _row(3, 1, "Yes.", "agree-donation"),
        _row(3, 1, "Or no.", "disagree-donation"),
        _row(4, 1, "Bye.", "closing"),
        _row(5, 0, "Bye.", "closing"),
    )
    positions = [turn.expressed for turn in dialogue.turns]
    assert positions == [Expressed.OPPOSE, None, None, None, Expressed.NONE, None]


def test_file_order_is_times_even_where_turn_numbers_disagree(put: Put) -> None:
    (dialogue,) = _load(put, _row(3, 1, "b", "other"), _row(3, 0, "a", "other"), _row(3, 1, "c", "other"))
    assert [turn.text for turn in dialogue.turns] == ["b", "a", "c"]


def test_parts_are_by_hash(put: Put) -> None:
    rows = [_row(0, 0, "Hi", "greeting", name=f"d{number}") for number in range(40)]
    for dialogue in _load(put, *rows):
        assert dialogue.split == part_by_hash(dialogue.id.removeprefix("persuasionforgood-"))
