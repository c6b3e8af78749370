import time

import pytest

from models.language.rule import RuleEngine
from models.reader import Engine, ExplainRequest, ObserveRequest
from tracker.context import WindowTurn
from tracker.observations import Critic, Evidence, Explanation, Mark, Trigger
from tracker.records import Media, Modality
from tracker.stances import Emotion, Expressed, Sentiment, Stance, TriggerKind

BEFORE = (WindowTurn("1", "tom", "no way"), WindowTurn("2", "ines", "hm"))


def request(text: str, **changes: object) -> ObserveRequest:
    fields = {"turn": "3", "holder": "maya", "text": text} | changes
    window = fields.pop("window", BEFORE)
    return ObserveRequest("room", WindowTurn(**fields), 0, "t-1", "whether", Stance.SUPPORT, window)


@pytest.mark.parametrize(
    ("text", "expressed"),
    [
        ("+1", Expressed.SUPPORT),
        ("-1 not for me", Expressed.OPPOSE),
        ("+0 both have a point", Expressed.NEUTRAL),
        ("", Expressed.NONE),
        ("+", Expressed.NONE),
        ("I say +1", Expressed.NONE),
        (" +1", Expressed.NONE),
    ],
)
def test_a_marker_at_the_start_is_the_whole_reading(text: str, expressed: Expressed) -> None:
    (seen,) = RuleEngine().observe([request(text)])
    assert seen.expressed[expressed] == 1.0
    assert (seen.emotion, seen.sentiment, seen.relevance) == (Emotion.NEUTRAL, Sentiment.NEUTRAL, 1.0)
    assert (seen.turn, seen.holder, seen.target, seen.read_under) == ("3", "maya", "t-1", Stance.SUPPORT)
    assert (seen.model.engine, seen.model.language, seen.marks) == ("rule", "und", ())


@pytest.mark.parametrize(
    ("changes", "turns", "holders"),
    [
        ({"reply_to": "1"}, ("1",), ("tom",)),
        ({"reply_to": "gone"}, ("2",), ("ines",)),
        ({}, ("2",), ("ines",)),
        ({"window": ()}, ("3",), ("maya",)),
    ],
)
def test_a_flips_trigger_is_the_turn_replied_to_else_the_one_before_else_itself(
    changes: dict[str, object], turns: tuple[str, ...], holders: tuple[str, ...]
) -> None:
    engine = RuleEngine()
    observed = request("-1 so much for that", **changes)
    (observation,) = engine.observe([observed])
    assert engine.explain([ExplainRequest(observed, observation, Stance.OPPOSE)]) == [
        Explanation(
            turn="3",
            target="t-1",
            trigger=Trigger(TriggerKind.FACTUAL_LOGICAL, turns, holders, 1.0),
            evidence=(Evidence("3", "text"),),
            rationale='The text begins with "-1": oppose.',
            critic=Critic.NONE,
        )
    ]


def test_it_marks_what_it_was_not_shown() -> None:
    engine = RuleEngine()
    picture = (Media(Modality.IMAGE, uri="https://example.org/a.png"),)
    described = (Media(Modality.IMAGE, description="a cat"),)
    marks = [
        seen.marks
        for seen in engine.observe(
            [
                request("+1", reply_to="1", media=described),
                request("+1", reply_to="0"),
                request("+1", media=picture),
                request("+1", reply_to="0", media=described + picture),
            ]
        )
    ]
    assert marks == [
        (),
        (Mark.REPLY_MISSING,),
        (Mark.MEDIA_MISSING,),
        (Mark.REPLY_MISSING, Mark.MEDIA_MISSING),
    ]


def test_it_is_an_engine_and_costs_microseconds() -> None:
    engine = RuleEngine()
    assert isinstance(engine, Engine)
    requests = [request("+1 yes")] * 10_000
    start = time.perf_counter()
    assert len(engine.observe(requests)) == 10_000
    assert time.perf_counter() - start < 0.5  # 50 us each; about 2 us where nothing else runs
    assert engine.tokens(requests[0]) == 1
