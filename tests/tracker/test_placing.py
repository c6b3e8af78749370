"""Where a turn stands in the window."""

import msgspec
import pytest

from tests.tracker.strategies import at, create
from tracker.context import WINDOW_TURNS, WindowTurn, remembered
from tracker.ledger import LedgerEntry
from tracker.placing import edited, placed, preceding
from tracker.stances import Expressed

ENTRIES = {
    n: LedgerEntry(id=f"r-{n}", op="create", arrival=n, sent_at=at(n), turn=f"m-{n}") for n in range(20)
}
TURNS = {n: remembered(create(f"m-{n}", f"text {n}", n)) for n in range(20)}


def names(window: tuple[WindowTurn, ...]) -> list[str]:
    return [seen.turn for seen in window]


@pytest.mark.parametrize(("number", "order"), [(1, [1, 2, 4]), (3, [2, 3, 4]), (5, [2, 4, 5])])
def test_a_turn_stands_by_its_time(number: int, order: list[int]) -> None:
    window = placed((TURNS[2], TURNS[4]), TURNS[number], ENTRIES[number], ENTRIES)
    assert names(window) == [f"m-{n}" for n in order]


def test_turns_of_one_time_stand_by_arrival_and_those_without_an_entry_first() -> None:
    late = LedgerEntry(id="late", op="create", arrival=30, sent_at=at(2), turn="late")
    stranger = WindowTurn("stranger", "ann", "hm")
    window = placed((stranger, TURNS[2], TURNS[4]), WindowTurn("late", "ann", "hm"), late, ENTRIES)
    assert names(window) == ["stranger", "m-2", "late", "m-4"]


def test_a_full_window_lets_its_oldest_go() -> None:
    full = tuple(TURNS[n] for n in range(1, WINDOW_TURNS + 1))
    assert placed(full, TURNS[0], ENTRIES[0], ENTRIES) == full
    assert names(placed(full, TURNS[19], ENTRIES[19], ENTRIES))[0] == "m-2"


def test_an_edit_changes_the_text_alone_and_only_what_is_there() -> None:
    seen = remembered(create("m-1", "before", reply_to="m-0", language="en"))
    turn, window = edited((seen, TURNS[2]), "m-1", "ann", "after")
    assert (turn.text, turn.reply_to, turn.language) == ("after", "m-0", "en")
    assert window == (turn, TURNS[2])
    assert edited((TURNS[2],), "m-1", "ann", "after") == (WindowTurn("m-1", "ann", "after"), (TURNS[2],))


def test_what_is_edited_has_no_side_until_it_is_read_again() -> None:
    seen = msgspec.structs.replace(TURNS[1], sides={"t-1": Expressed.SUPPORT})
    turn, window = edited((seen,), "m-1", "ann", "after")
    assert turn.sides == window[0].sides == {}


def test_what_precedes_a_turn_is_what_the_window_holds_before_it() -> None:
    window = (TURNS[1], TURNS[2], TURNS[3])
    assert [preceding(window, turn) for turn in ("m-1", "m-3", "m-9")] == [(), window[:2], ()]
