import pytest

from models.datasets import meld
from models.datasets.files import Malformed
from tests.models.datasets.putting import Put
from tracker.stances import Emotion, Sentiment

HEAD = (
    "Sr No.,Utterance,Speaker,Emotion,Sentiment,Dialogue_ID,Utterance_ID,Season,Episode,StartTime,EndTime\r\n"
)
TAIL = '1,2,"0:00:01,000","0:00:02,000"\r\n'


def test_a_scene_is_a_dialogue_with_gaps_closed(put: Put) -> None:
    rows = (
        f'1,"Oh, it’s you",Ann,joy,positive,0,0,{TAIL}'
        f"2,Sit down,Bob,neutral,neutral,0,3,{TAIL}"
        f"3,Why?,Ann,surprise,negative,0,2,{TAIL}"
        f"4,Help,Cy,fear,negative,1,0,{TAIL}"
    )
    first, second = meld.load(put("MELD/dev_sent_emo.csv", HEAD + rows), "dev")
    assert [(turn.index, turn.text) for turn in first.turns] == [
        (0, "Oh, it’s you"),
        (1, "Why?"),
        (2, "Sit down"),
    ]
    assert (first.turns[0].emotion, first.turns[0].sentiment) == (Emotion.JOY, Sentiment.POSITIVE)
    assert (second.id, second.turns[0].speaker) == ("meld-dev-1", "Cy")


def test_numbers_that_restart_in_each_part_make_different_ids(put: Put) -> None:
    for part in ("train", "dev"):
        root = put(f"{part}_sent_emo.csv", f"{HEAD}1,Hi,Ann,joy,positive,0,0,{TAIL}")
    assert sorted(dialogue.id for dialogue in meld.load(root)) == ["meld-dev-0", "meld-train-0"]


@pytest.mark.parametrize(
    "row", ["1,Hi,Ann,hungry,positive,0,0,", "1,Hi,Ann,joy,good,0,0,", "1,Hi,Ann,joy,positive,0,x,"]
)
def test_unknown_labels_are_malformed(put: Put, row: str) -> None:
    with pytest.raises(Malformed, match="dialogue 0"):
        list(meld.load(put("train_sent_emo.csv", HEAD + row + TAIL)))
