import pytest

from models.datasets import climatememes
from models.datasets.files import Malformed
from tests.models.datasets.putting import Put
from tracker.records import Modality
from tracker.stances import Expressed

MEME = {
    "file": "ab1.jpeg",
    "stance": "skeptical",
    "title": "Summer",
    "ocr": "COLD?/nWAIT.",
    "caption": "It doubts.",
}


def test_a_meme_is_a_post_whose_description_does_not_say_what_it_means(put: Put) -> None:
    put("images/ab1.jpeg", "not really a picture")
    (dialogue,) = climatememes.load(put("images/labels.json", [MEME]))
    (turn,) = dialogue.turns
    (media,) = turn.media
    assert (turn.text, turn.expressed, turn.label) == ("Summer", Expressed.OPPOSE, "skeptical")
    assert (media.modality, media.mime) == (Modality.MEME, "image/jpeg")
    assert media.description == 'A meme that reads "COLD? / WAIT."'
    assert media.uri is not None
    assert media.uri.startswith("file://")
    assert turn.rationale == "It doubts."


def test_a_picture_need_not_be_there_nor_have_words(put: Put) -> None:
    (dialogue,) = climatememes.load(put("images/labels.json", [MEME | {"ocr": "", "stance": "neither"}]))
    assert (dialogue.turns[0].media[0].uri, dialogue.turns[0].media[0].description) == (None, None)
    assert dialogue.turns[0].expressed is Expressed.NONE


def test_an_unknown_stance_is_malformed(put: Put) -> None:
    with pytest.raises(Malformed, match=r"ab1\.jpeg"):
        list(climatememes.load(put("images/labels.json", [MEME | {"stance": "angry"}])))
