import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.language.prompts import observe_body
from models.reasoning.room import NOTE, QUESTION, WORDS, Room, estimated, whole
from tests.models.reasoning.build import ask
from tracker.context import WindowTurn


def history(turns: int, words: int = 10) -> tuple[WindowTurn, ...]:
    return tuple(WindowTurn(str(index), f"h{index % 4}", "word " * words) for index in range(turns))


def test_a_whole_room_drops_the_oldest_but_the_one_replied_to() -> None:
    turn = WindowTurn("new", "h0", "so", reply_to="1")
    shown = Room(1000, whole=True).fitted(ask(window=history(200), turn=turn)).window
    kept = [int(one.turn) for one in shown]
    assert kept[0] == 1
    assert kept[1:] == list(range(200 - len(kept) + 1, 200))
    assert 10 < len(kept) < 200


def test_a_small_history_is_shown_whole() -> None:
    assert len(Room(5000, whole=True).fitted(ask(window=history(60))).window) == 60


def test_a_window_has_the_holders_own_turns_first() -> None:
    turn = WindowTurn("new", "h0", "so")
    shown = Room(200).fitted(ask(window=history(12), turn=turn)).window
    assert [one.holder for one in shown[:3]] == ["h0"] * 3


@given(
    texts=st.lists(st.text(max_size=300), max_size=30),
    new=st.text(max_size=4000),
    tokens=st.integers(200, 2000),
    everything=st.booleans(),
)
def test_what_is_shown_stays_within_the_room(
    texts: list[str], new: str, tokens: int, everything: bool
) -> None:
    window = tuple(WindowTurn(str(index), "h", text) for index, text in enumerate(texts))
    shown = Room(tokens, whole=everything).fitted(ask(new, window=window))
    assert estimated(observe_body(shown, map(str, range(1, 99)))) <= tokens


def test_notes_of_other_roles_are_short() -> None:
    assert Room().note("brief") == "brief"
    assert estimated(Room().note("word " * 5000)) <= NOTE


def test_a_context_leaves_room_for_question_and_answer() -> None:
    room = whole(2048, estimated)
    assert (room.tokens, room.whole) == (2048 - QUESTION - WORDS, True)
    with pytest.raises(ValueError, match="500 tokens of context"):
        whole(500, estimated)
