import pytest

from models.reasoning.cartographer import Cartographer
from models.reasoning.room import Room, estimated
from tests.models.language.scripted import ScriptedChat
from tests.models.reasoning.build import TOPIC, WINDOW
from tracker.context import WindowTurn

HELD, PROPOSED, ABOUT = "take a side", "as one sentence", "still about"


def test_a_proposition_is_worded_once_a_side_is_taken() -> None:
    chat = ScriptedChat({HELD: "yes", PROPOSED: f'"{TOPIC}"'})
    assert Cartographer(chat).propose(WINDOW) == TOPIC
    assert '1. "Maya": "one dog is plenty"' in chat.written[0][1].content


def test_small_talk_has_no_proposition_and_costs_no_words() -> None:
    chat = ScriptedChat({HELD: "no", PROPOSED: TOPIC})
    assert Cartographer(chat).propose(WINDOW) is None
    assert chat.written == []


@pytest.mark.parametrize("answer", ["", "x" * 5000])
def test_an_answer_that_is_no_proposition_is_none(answer: str) -> None:
    assert Cartographer(ScriptedChat({PROPOSED: answer})).propose(WINDOW) is None


@pytest.mark.parametrize(("answer", "drifted"), [("yes", False), ("no", True), ("perhaps", False)])
def test_drift_is_an_answer_of_no(answer: str, drifted: bool) -> None:
    chat = ScriptedChat({ABOUT: answer})
    assert Cartographer(chat).drifted(TOPIC, WINDOW) is drifted
    assert f'Topic: "{TOPIC}"' in chat.asked[0][1].content


def test_without_turns_nothing_is_asked() -> None:
    chat = ScriptedChat()
    assert Cartographer(chat).propose(()) is None
    assert not Cartographer(chat).drifted(TOPIC, ())
    assert chat.asked == []


def test_the_newest_turns_are_shown_as_far_as_there_is_room() -> None:
    chat, room = ScriptedChat({PROPOSED: TOPIC}), Room(800, whole=True)
    turns = [WindowTurn(str(index), "Tom", f"word {index} " * 20) for index in range(100)]
    Cartographer(chat, room).propose(turns)
    Cartographer(chat, room).drifted("x" * 9000, turns)
    for shown in (talk[1].content for talk in chat.asked):
        assert estimated(shown) < 1000
        assert "word 99" in shown
        assert "word 50 " not in shown


@pytest.mark.parametrize(("answer", "same"), [("yes", True), ("no", False), ("perhaps", False)])
def test_the_same_debate_in_other_words_is_an_answer_of_yes(answer: str, same: bool) -> None:
    chat = ScriptedChat({"in other words": answer})
    assert Cartographer(chat).same(TOPIC, "The debate concerning whether a dog more is good") is same
    assert f'First question: "{TOPIC}"' in chat.asked[0][1].content
