from pathlib import Path
from typing import Any

import pytest

from models.datasets import panosent
from models.datasets.dialogue import Dialogue
from models.datasets.files import Malformed, MissingPart
from models.datasets.labels import SentimentTrigger
from models.datasets.panosent_labels import flips, opinions, strip_tags, trigger_of
from tests.models.datasets.putting import Put
from tracker.records import Modality
from tracker.stances import Sentiment

CAPTION = "A slice of bread that has gone completely green"
FLIP = {
    **{"holder": "Ann", "target": "bread", "aspect": "taste", "initial sentiment": "negative"},
    **{"flipped sentiment": "positive", "trigger type": "Logic Argumentation"},
}


def _turn(speaker: int, utterance: str, reply: int = -1, **fields: Any) -> dict[str, Any]:
    return {
        "index": 0,
        "speaker": speaker,
        "utterance": utterance,
        "annotation": "",
        "reply": reply,
        **fields,
    }


def _element(value: str | None, manner: Any = "explicit") -> dict[str, Any]:
    return {"identity": "x_01", "value": value, "manner": manner}


SEXTUPLE = {
    **{"holder": _element("Ann"), "target": _element("bread"), "aspect": _element("taste", "implicitly")},
    **{"opinion": _element("good"), "sentiment": "positive", "rationale": _element(None, "none")},
}
RAW: dict[str, Any] = {
    **{
        "doc_id": "00001",
        "speakers": [{"id": 3, "name": "Ann"}, {"id": 4, "name": "Bo"}, {"id": 5, "name": "Ann"}],
    },
    "dialogue": [
        _turn(3, "The <aspect_01> taste </aspect_01>. <opinion_04> Good </opinion_04>!", modality="None"),
        _turn(4, "Look", 0, modality={"type": "img", "caption": CAPTION, "id": "img_0002"}),
        _turn(5, "No", 3, modality=None),
    ],
    **{"hexatuple": [SEXTUPLE], "sentiment flip": "None"},
}


def _load(put: Put, raw: dict[str, Any] = RAW, name: str = "exp.mod.flip/img/try.elec.json") -> Dialogue:
    (dialogue,) = panosent.load(put(f"panosent/{name}", [raw]) / "panosent")
    return dialogue


def test_tags_are_stripped_for_they_give_the_labels_away(put: Put) -> None:
    assert _load(put).turns[0].text == "The taste. Good!"


def test_ids_of_speakers_and_their_names(put: Put) -> None:
    dialogue = _load(put)
    assert [turn.speaker for turn in dialogue.turns] == ["Ann", "Bo", "Ann (5)"]
    assert [turn.reply_to for turn in dialogue.turns] == [None, 0, None]  # one answers a later turn


def test_doc_ids_restart_in_each_file_and_dialogue_ids_do_not(put: Put) -> None:
    put("panosent/exp.mod.flip/img/try.elec.json", [RAW])
    put("panosent/exp.mod.flip/vid/try.elec.json", [])
    root = put("panosent/imp.txt.noflip/imp.txt.noflip.movie.json", [RAW]) / "panosent"
    assert [dialogue.id for dialogue in panosent.load(root)] == [
        "panosent-exp.mod.flip-img-electronic-00001",
        "panosent-imp.txt.noflip-txt-movie-00001",
    ]


@pytest.mark.parametrize("media", ["panosent", "media/panosent"])
def test_media_are_found_in_the_set_or_beside_it(put: Put, tmp_path: Path, media: str) -> None:
    put(f"{media}/exp.mod.flip/img/electronic/img_0002.jpg", "not really a picture")
    put(f"{media}/exp.mod.flip/img/food/img_0002.jpg", "another domain's")
    (item,) = _load(put).turns[1].media
    assert item.uri == (tmp_path / media / "exp.mod.flip/img/electronic/img_0002.jpg").resolve().as_uri()
    assert (item.modality, item.mime, item.description) == (Modality.IMAGE, "image/jpeg", CAPTION)


def test_media_without_a_file_or_a_type(put: Put) -> None:
    turns = [
        _turn(3, "a", modality={"type": "None"}),
        _turn(3, "b", modality={"type": "video", "id": "vid_1"}),
    ]
    none, video = _load(put, RAW | {"dialogue": turns}).turns
    assert none.media == ()
    assert [(item.modality, item.uri, item.description) for item in video.media] == [
        (Modality.VIDEO, None, None)
    ]


def test_a_text_whose_backslashes_were_read_is_taken_from_its_annotation(put: Put) -> None:
    turn = _turn(3, "The \target_01\x0cruit", annotation="The <target_01> fruit </target_01>.")
    assert _load(put, RAW | {"dialogue": [turn]}).turns[0].text == "The fruit."


@pytest.mark.parametrize("key", ["sentiment flip", "sentiment_flip", "sentiment"])
@pytest.mark.parametrize(("value", "count"), [([FLIP, FLIP], 2), (FLIP, 1), ("None", 0), (None, 0), ([], 0)])
def test_the_flips_key_and_value_are_spelled_in_many_ways(put: Put, key: str, value: Any, count: int) -> None:
    raw = {name: field for name, field in RAW.items() if name != "sentiment flip"}
    found = _load(put, {**raw, key: value}).sentiment_flips
    assert len(found) == count
    assert all((flip.before, flip.after) == (Sentiment.NEGATIVE, Sentiment.POSITIVE) for flip in found)


@pytest.mark.parametrize(
    "change",
    [
        {"initial sentiment": "positive"},
        {"flipped sentiment": "reflective"},
        {"initial sentiment": None, "flipped sentiment": None},
        {"flipped sentiment": "more negative"},
        {"holder": None},
    ],
)
def test_a_flip_that_changes_nothing_is_none(change: dict[str, Any]) -> None:
    assert list(flips([FLIP | change])) == []


@pytest.mark.parametrize(
    ("word", "trigger"),
    [
        ("Personal Experiences and Self-reflection", SentimentTrigger.EXPERIENCE),
        ("re-evaluation due to a deeper understanding", SentimentTrigger.EXPERIENCE),
        ("Reevaluation due to deeper understanding", SentimentTrigger.EXPERIENCE),
        ("personal reflection", SentimentTrigger.EXPERIENCE),
        ("Person Feedback and Interaction", SentimentTrigger.FEEDBACK),
        ("Participating Feedback and Interaction", SentimentTrigger.FEEDBACK),
        ("Introduction of new information", SentimentTrigger.NEW_INFORMATION),
        ("Logic Argumentation", SentimentTrigger.ARGUMENTATION),
        ("External Influence", None),
        ("None", None),
        (None, None),
    ],
)
def test_the_spellings_of_triggers(word: str | None, trigger: SentimentTrigger | None) -> None:
    assert trigger_of(word) is trigger


def test_a_sextuples_gaps_are_none() -> None:
    (opinion,) = opinions([SEXTUPLE | {"sentiment": "initially positive"}, "stray"])
    assert (opinion.holder, opinion.sentiment, opinion.rationale) == ("Ann", None, None)
    assert opinion.target is not None
    assert opinion.aspect is not None
    assert (opinion.target.explicit, opinion.aspect.explicit) == (True, False)


@pytest.mark.parametrize("manner", [None, "none", "positive", "implicitly explicit"])
def test_a_manner_that_says_nothing(manner: str | None) -> None:
    (opinion,) = opinions([{"target": _element("bread", manner)}])
    assert opinion.target is not None
    assert opinion.target.explicit is None


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (
            "The <img> old drum </img> <caption> A drum that is very old indeed, outside </caption> won.",
            "The old drum won.",
        ),
        ("See <vid>A long and winding road in the evening</vid>", "See"),
        ("Just look <img> a close-up of a fragile and old thing. </img>.", "Just look."),
        ("It is <i>fine</i>, but <img> <img_num_01> </img>", "It is fine, but"),
        ("I saw <rationale_02> that it broke", "I saw that it broke"),
        ("5 < 6 and 7 > 6", "5 < 6 and 7 > 6"),
    ],
)
def test_captions_in_a_text_belong_to_the_media(text: str, plain: str) -> None:
    assert strip_tags(text) == plain


def test_other_forms_are_errors(put: Put, tmp_path: Path) -> None:
    with pytest.raises(MissingPart):
        list(panosent.load(tmp_path))
    with pytest.raises(Malformed, match="no speaker 9"):
        _load(put, RAW | {"dialogue": [_turn(9, "Hm")]})
    with pytest.raises(Malformed, match="domains"):
        _load(put, name="exp.mod.flip/aud/try.zebra.json")
