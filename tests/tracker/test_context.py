"""The window is bounded, in order, and finds by id."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.tracker.strategies import create
from tracker.context import WINDOW_TURNS, Window, WindowTurn, extended, find, remembered
from tracker.records import Media, Modality


def _window(turns: list[str]) -> Window:
    window: Window = ()
    for turn in turns:
        window = extended(window, WindowTurn(turn, "ann", "text"))
    return window


@given(st.lists(st.text(min_size=1), max_size=40))
def test_the_window_is_the_last_turns_oldest_first(turns: list[str]) -> None:
    assert [seen.turn for seen in _window(turns)] == turns[-WINDOW_TURNS:]


@given(st.lists(st.sampled_from("abcdef"), max_size=20), st.sampled_from("abcdefg"))
def test_find_gives_the_turn_or_none(turns: list[str], wanted: str) -> None:
    found = find(_window(turns), wanted)
    assert (found.turn if found else None) == (wanted if wanted in turns[-WINDOW_TURNS:] else None)


def test_find_of_nothing_is_nothing() -> None:
    assert find(_window(["a"]), None) is None


def test_the_newest_of_two_turns_with_one_id_is_found() -> None:
    window = (WindowTurn("a", "ann", "old"), WindowTurn("a", "ann", "new"))
    found = find(window, "a")
    assert found is not None
    assert found.text == "new"


def test_a_turn_is_remembered_with_all_a_reader_needs() -> None:
    media = (Media(Modality.MEME, "https://x/1.png", "image/png", "a cat"),)
    turn = remembered(create("m-1", "hi", reply_to="m-0", media=media, language="en", display_name="Ann"))
    assert turn == WindowTurn("m-1", "ann", "hi", "m-0", media, "en")
    for codec in (msgspec.json, msgspec.msgpack):
        assert codec.decode(codec.encode((turn,)), type=Window) == (turn,)
