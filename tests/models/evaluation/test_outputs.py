from models.evaluation import outputs
from models.evaluation.judge import ContainmentJudge, Verdicts
from models.evaluation.stanceflip import Extraction, Flip, Sextuple, measures
from tests.models.evaluation.build import FACT, OPP, SUP
from tracker.stances import Emotion, Sentiment

WORDS = {
    "holder": "s1",
    "target": "Trams",
    "emotion": " Joy",
    "sentiment": "POSITIVE",
    "stance": "He disagrees",
    "rationale": "",
}


def test_texts_become_labels() -> None:
    assert outputs.sextuple(WORDS, turn=3, flip=True) == Sextuple(
        holder="s1",
        target="Trams",
        emotion=Emotion.JOY,
        sentiment=Sentiment.POSITIVE,
        stance=OPP,
        rationale=None,
        flip=True,
        turn=3,
    )
    assert outputs.flip("Support", "opposed to it", "new data") == Flip(SUP, OPP, FACT)


def test_what_names_no_label_is_a_wrong_prediction() -> None:
    said = outputs.sextuple({"holder": "a", "stance": "Whatever", "emotion": "Bliss"}, turn=0)
    gold = Sextuple(holder="a", stance=SUP, emotion=Emotion.JOY, turn=0)
    flips = ((outputs.flip("x", "y", "magic"),), (Flip(SUP, OPP, FACT),))
    found = Extraction("", (said,), (gold,), *flips)
    figures = {one.name: one.tally(found).tolist() for one in measures(Verdicts(ContainmentJudge(), ()))}
    assert figures["item_stance"] == figures["item_emotion"] == figures["trigger"] == [0, 1, 1]


def test_what_is_not_said_is_missing() -> None:
    assert outputs.sextuple({"holder": "a"}) == Sextuple(holder="a")
    assert outputs.flip("support", "oppose", None).trigger is None
