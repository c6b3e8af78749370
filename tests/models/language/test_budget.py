from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.language.budget import PROMPT, cut, fit, name
from models.reader import ObserveRequest
from tracker.context import WindowTurn
from tracker.records import Media, Modality

Ask = Callable[..., ObserveRequest]


def words(text: str) -> int:
    return len(text.split())


def shown(request: ObserveRequest) -> int:
    """What a fitted request costs, counted as the budget promises."""
    turns = [PROMPT.turn + words(turn.holder) + words(turn.text) for turn in request.window]
    return PROMPT.tokens + words(request.turn.text) + words(request.proposition) + sum(turns)


def window(*turns: tuple[str, str], length: int = 30) -> tuple[WindowTurn, ...]:
    return tuple(WindowTurn(turn, holder, "w " * length) for turn, holder in turns)


def test_a_request_that_fits_is_shown_whole(ask: Ask) -> None:
    assert fit(ask(), 640, words) == ask()


def test_the_order_is_reply_then_own_then_nearest_and_the_window_keeps_its_own(ask: Ask) -> None:
    turns = window(("1", "Tom"), ("2", "Maya"), ("3", "Ines"), ("4", "Tom"), ("5", "Ines"))
    request = ask("w " * 900, window=turns, reply_to="1")
    kept = [tuple(turn.turn for turn in fit(request, budget, words).window) for budget in range(128, 700)]
    assert list(dict.fromkeys(kept)) == [
        (),
        ("1",),
        ("1", "2"),
        ("1", "2", "5"),
        ("1", "2", "4", "5"),
        ("1", "2", "3", "4", "5"),
    ]  # "1" is replied to, "2" is Maya's own


def test_a_giant_turn_keeps_its_head_and_tail_and_leaves_room(ask: Ask) -> None:
    giant = "first " + "x " * 8000 + "last"
    fitted = fit(ask(giant), 256, words)
    assert fitted.turn.text.startswith("first x")
    assert fitted.turn.text.endswith("x last")
    assert words(fitted.turn.text) <= 128
    assert fitted.proposition == ask().proposition
    assert [turn.turn for turn in fitted.window] == ["1", "2"]


def test_turn_5000_costs_what_turn_20_did(ask: Ask) -> None:
    def cost(seen: int) -> int:
        turns = window(*((str(index), f"h{index}") for index in range(seen)))[-12:]
        return shown(fit(ask(window=turns), 256, words))

    assert cost(20) == cost(5000) <= 256


def test_cues_share_the_turns_room_and_small_ones_stay_whole(ask: Ask) -> None:
    media = (
        Media(Modality.MEME, description="a dog in a burning room"),
        Media(Modality.VIDEO, description="frame " * 500),
        Media(Modality.IMAGE),
    )
    fitted = fit(ask("word " * 500, media=media), 200, words).turn
    assert fitted.media[0] == media[0]
    assert fitted.media[2] == media[2]
    assert words(fitted.text) + words(fitted.media[1].description or "") <= 79
    assert words(fitted.text) > 35


@given(st.text(max_size=400), st.integers(3, 60), st.sampled_from([words, len]))
def test_a_cut_never_exceeds_its_room(text: str, room: int, count: Callable[[str], int]) -> None:
    result = cut(text, room, count)
    assert count(result) <= room
    assert result == text or count(text) > room


@pytest.mark.parametrize(("holder", "length"), [("Maya", 4), ("m" * 40, 40), ("m" * 512, 43)])
def test_names_are_short(holder: str, length: int) -> None:
    assert len(name(holder)) == length
