from typing import Any

import pytest

from models.datasets import zs_csd
from models.datasets.files import Malformed
from tests.models.datasets.putting import Put
from tracker.stances import Expressed


def _chain(number: int, sentences: list[str], speakers: list[int], label: int) -> dict[str, Any]:
    chain = {"id": number, "target": "反对加班", "target_type": "c", "sentences": sentences}
    return {**chain, "speakers": speakers, "label": label}


ROOT = _chain(0, ["早该下班了"], [4], 0)


def test_speakers_are_real_and_the_label_is_the_last_sentences(put: Put) -> None:
    reply = _chain(1, ["早该下班了", "为什么", "累"], [4, 9, 4], 1)
    first, second = zs_csd.load(put("dev_data.json", [ROOT, reply]), "dev")
    assert first.named
    assert [turn.speaker for turn in second.turns] == ["u4", "u9", "u4"]
    assert [turn.expressed for turn in second.turns] == [None, None, Expressed.OPPOSE]
    assert first.group == second.group
    assert second.proposition == "关于是否支持“反对加班”的讨论"


def test_neutral_says_nothing_of_a_position_but_is_kept(put: Put) -> None:
    (dialogue,) = zs_csd.load(put("dev_data.json", [ROOT | {"label": 2}]))
    assert (dialogue.turns[0].expressed, dialogue.turns[0].label) == (Expressed.NONE, "neutral")


def test_a_chain_comes_once(put: Put) -> None:
    assert len(list(zs_csd.load(put("train_data.json", [ROOT, ROOT | {"id": 1}]), "train"))) == 1


@pytest.mark.parametrize("change", [{"label": 3}, {"speakers": []}, {"sentences": [], "speakers": []}])
def test_another_form_is_malformed(put: Put, change: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        list(zs_csd.load(put("dev_data.json", [ROOT | change])))
