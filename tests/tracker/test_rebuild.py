"""Journal and states topic give a conversation back as it was, at any version, from any earlier one."""

import datetime as dt
from collections.abc import Iterable, Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tracker.corrections import ALL, clear, delete, edit, erase, logs, pin
from tests.tracker.living import Live
from tests.tracker.strategies import PROPOSITIONS, at, create, debate, dialogues, target_of
from tracker import merging, rebuild, texts
from tracker.context import WindowTurn
from tracker.conversation import Header
from tracker.ledger import JournalEntry, Ledger
from tracker.machine import StanceState
from tracker.merging import Rows
from tracker.rebuild import Kept, Rebuilt
from tracker.records import Record, record_id
from tracker.settlement import Outcome
from tracker.stances import Stance
from tracker.targets import HolderStates

TARGET = target_of(PROPOSITIONS[0]).id
anything = logs(*ALL, replacing=True) | logs(*ALL) | dialogues()


def rebuilt(kept: Kept, rows: Rows, journal: Iterable[JournalEntry], upto: int) -> Rebuilt:
    found = told(kept, rows, journal, upto)
    assert found is not None
    return found


def told(kept: Kept, rows: Rows, journal: Iterable[JournalEntry], upto: int) -> Rebuilt | None:
    """From the journal alone where it is whole."""
    course = rebuild.in_order(journal)
    taken = {arrival: one for arrival, one in course.items() if kept.version < arrival <= upto}
    if len(taken) == upto - kept.version:
        return rebuild.rebuilt(kept, taken, upto)
    newest = max(rows.header.version if rows.header else 0, *course, 0)
    named = {one.holder for one in kept.ledger.values() if one.holder is not None}
    merged = merging.merged(rows, course.values(), upto, newest, named)
    return None if merged is None else rebuild.rebuilt(kept, taken, upto, merged)


def states(holders: Mapping[str, HolderStates]) -> dict[str, HolderStates]:
    """Without those who have none."""
    return {holder: dict(of_it) for holder, of_it in holders.items() if of_it}


def check(live: Live, upto: int, kept: Kept, found: Rebuilt, ledger: Ledger | None = None) -> None:
    """What was kept, and what was rebuilt from there, are what the conversation was at that version."""
    was = live.kept[upto]
    assert found.header == was.conversation.header
    assert states({**kept.conversation.holders, **found.holders}) == states(was.conversation.holders)
    assert texts.ledger(kept, found, live.record) == (was.ledger if ledger is None else ledger)


@given(anything, st.data())
def test_a_whole_journal_gives_every_version_back_from_every_earlier_one(
    records: list[Record], data: st.DataObject
) -> None:
    live = Live(records)
    upto = data.draw(st.integers(1, live.newest))
    kept = live.kept[data.draw(st.integers(0, upto - 1))]
    check(live, upto, kept, rebuilt(kept, Rows(), live.journal, upto))


@given(anything, st.data())
def test_what_was_sent_again_changes_nothing(records: list[Record], data: st.DataObject) -> None:
    live = Live(records)
    journal = live.journal
    for _ in range(data.draw(st.integers(0, 3))):
        start, end = sorted(data.draw(st.integers(0, live.newest)) for _ in range(2))
        at_ = data.draw(st.integers(end, len(journal)))
        journal[at_:at_] = live.journal[start:end]
    check(live, live.newest, live.kept[0], rebuilt(live.kept[0], live.rows(), journal, live.newest))


@given(anything, st.data())
def test_a_window_that_dropped_nothing_comes_back(records: list[Record], data: st.DataObject) -> None:
    live = Live(records)
    if sum(outcome.entry.op == "create" for outcome in live.outcomes) > 12:
        return
    kept = live.kept[data.draw(st.integers(0, live.newest - 1))]
    found = rebuilt(kept, Rows(), live.journal, live.newest)
    shown = texts.shown(kept, found)
    assert texts.window(shown, live.record) == live.kept[-1].conversation.window
    # Without any record the store's own window is all there is, of the turns that are as they were.
    still = texts.window(shown, lambda arrival: None)
    assert all(turn in live.kept[-1].conversation.window for turn in still)
    assert {(turn.turn, turn.text) for turn in still} <= {
        (turn.turn, turn.text) for turn in kept.conversation.window
    }


@given(anything, st.data())
def test_without_the_journals_beginning_the_rows_tell_the_states(
    records: list[Record], data: st.DataObject
) -> None:
    live = Live(records)
    first = data.draw(st.integers(1, live.newest))
    found = rebuilt(live.kept[0], live.rows(), live.journal[first:], live.newest)
    check(live, live.newest, live.kept[0], found, partial(live, found, first, live.newest))


def partial(live: Live, found: Rebuilt, first: int, upto: int) -> Ledger:
    """The live ledger as far as a journal that begins after `first` tells it."""
    told = {*range(first + 1, upto + 1)}
    for outcome in live.outcomes[first:upto]:
        told |= {entry.arrival for entry in outcome.journal.changed}
    assert set(found.ledger) == told
    return {arrival: entry for arrival, entry in live.kept[upto].ledger.items() if arrival in told}


@given(anything, st.data())
def test_an_earlier_version_is_told_exactly_or_not_at_all(records: list[Record], data: st.DataObject) -> None:
    live = Live(records)
    first = data.draw(st.integers(0, live.newest - 1))
    upto = data.draw(st.integers(first + 1, live.newest))
    found = told(live.kept[0], live.rows(), live.journal[first:], upto)
    if found is not None:
        check(live, upto, live.kept[0], found, partial(live, found, first, upto))
    touched = {pair for outcome in live.outcomes[upto:] for pair in changed(outcome)}
    settled = {pair for outcome in live.outcomes[first:upto] for pair in changed(outcome)}
    assert (found is not None) is (first == 0 or touched <= settled)


def changed(outcome: Outcome) -> set[tuple[str, str]]:
    return {(moved.holder, moved.target) for moved in outcome.states} | {*outcome.forgotten}


@given(anything, st.data())
def test_a_store_that_lags_behind_the_journals_beginning_ends_with_the_same_states(
    records: list[Record], data: st.DataObject
) -> None:
    live = Live(records)
    kept = live.kept[data.draw(st.integers(0, live.newest - 1))]
    first = data.draw(st.integers(kept.version, live.newest))
    found = rebuilt(kept, live.rows(), live.journal[first:], live.newest)
    assert found.header == live.kept[-1].conversation.header
    after = {**kept.conversation.holders, **found.holders}
    named = {entry.holder for entry in kept.ledger.values()}
    for holder, of_it in states(live.kept[-1].conversation.holders).items():
        assert after[holder] == of_it
    assert set(states(after)) - named <= {*states(live.kept[-1].conversation.holders)}


@given(anything, st.integers(1, 6))
def test_step_by_step_it_comes_to_the_same(records: list[Record], step: int) -> None:
    live = Live(records)
    kept = live.kept[0]
    while kept.version < live.newest:
        upto = min(live.newest, kept.version + step)
        found = rebuilt(kept, Rows(), live.journal[kept.version : upto], upto)
        check(live, upto, kept, found)
        text = texts.ledger(kept, found, live.record)
        kept = rebuild.kept_after(kept, msgspec.structs.replace(found, ledger=text), 1000, ())


def test_of_two_entries_of_one_arrival_the_later_one_in_the_log_counts() -> None:
    live = Live(debate(create("m-1", "+1", 1)))
    other = Live(debate(create("m-1", "-1", 1)))
    found = rebuilt(live.kept[0], Rows(), [*live.journal, other.journal[1]], 2)
    check(other, 2, live.kept[0], found)


def test_a_state_has_a_version_and_a_lower_one_is_ignored() -> None:
    live = Live(debate(create("m-1", "+1", 1), create("m-2", "-1", 2)))
    old = msgspec.structs.replace(live.rows().states[0], version=2, state=StanceState(Stance.SUPPORT))
    for rows in (Rows(live.rows().header, (old,)), Rows(states=(old,))):
        assert rebuilt(live.kept[0], rows, live.journal[2:], 3).holders["ann"][TARGET].stance == "oppose"
    newer = msgspec.structs.replace(old, version=3)
    header = msgspec.structs.replace(live.rows().header or Header(), version=3)
    found = rebuilt(live.kept[0], Rows(header, (newer,)), live.journal[1:2], 3)
    assert found.holders["ann"][TARGET].stance == "support"


@pytest.mark.parametrize("first", [0, 2, 3])
def test_who_was_erased_does_not_come_back(first: int) -> None:
    """Not even by a row that was sent again after its tombstone."""
    live = Live(debate(create("m-1", "+1", 1), create("m-2", "-1", 2, "çem"), erase("ann")))
    [row] = Live(debate(create("m-1", "+1", 1))).rows().states
    rows = live.rows()
    rows = msgspec.structs.replace(rows, states=(*rows.states, row))
    found = rebuilt(live.kept[0], rows, live.journal[first:], 4)
    assert states(found.holders).keys() == {"çem"}
    assert "ann" not in {entry.holder for entry in found.ledger.values()}
    assert b"ann" not in msgspec.json.encode(found.holders.get("çem"))
    assert "m-1" not in {one.turn for one in texts.shown(live.kept[0], found)}


def test_a_state_whose_end_the_journal_lost_is_ended_by_its_tombstone() -> None:
    live = Live(debate(create("m-1", "+1", 1), clear("ann"), create("m-2", "-1", 2, "çem")))
    [first, established, _, last] = live.journal
    found = rebuilt(live.kept[0], live.rows(), [first, established, last], 4)
    assert states(found.holders).keys() == {"çem"}


def test_a_header_that_nothing_tells_is_no_version() -> None:
    live = Live(debate(create("m-1", "+1", 1), create("m-2", "+1", 2)))
    assert told(live.kept[0], live.rows(), live.journal[2:], 2) is None


def test_a_ledger_that_is_trimmed_comes_back_trimmed() -> None:
    live = Live(debate(*(create(f"m-{day}", "+1", 86_400 * day) for day in range(1, 30))))
    course = rebuild.in_order(live.journal)
    found = rebuild.rebuilt(live.kept[0], course, 30, reach=dt.timedelta(days=7))
    assert found.trim_before == at(86_400 * 15)
    assert [entry.turn for entry in found.ledger.values()] == [f"m-{day}" for day in range(15, 30)]
    assert rebuilt(live.kept[0], Rows(), live.journal, 30).trim_before is None


def test_the_window_shows_the_latest_revision_or_nothing() -> None:
    records = debate(
        edit("m-2", "early", 1, id="e-0", revision=5),
        create("m-1", "one", 1),
        create("m-2", "two", 2),
        edit("m-1", "one, first", 3, id="e-1", revision=7),
        edit("m-1", "too old", 4, id="e-2", revision=6),
        edit("m-1", "one, again", 5, id="e-3", revision=7),
        create("m-3", "three", 6),
        delete("m-3", 7),
        edit("m-9", "waits", 8, id="e-4"),
    )
    live = Live(records)
    found = rebuilt(live.kept[0], Rows(), live.journal, live.newest)
    shown = texts.shown(live.kept[0], found)
    assert [turn.text for turn in texts.window(shown, live.record)] == ["one, again", "early"]
    lost = {"e-3"}

    def record(arrival: int) -> Record | None:
        found = live.record(arrival)
        return None if record_id(found) in lost else found

    assert [turn.text for turn in texts.window(shown, record)] == ["early"]
    assert texts.needed(live.kept[0], found) == {3, 4, 2, 7, live.newest}
    assert texts.ledger(live.kept[0], found, live.record)[live.newest].text == "waits"
    assert texts.ledger(live.kept[0], found, lambda arrival: None)[live.newest].text is None


def test_what_the_store_shows_still_stands_in_for_a_text_that_is_gone() -> None:
    live = Live(debate(create("m-1", "one", 1), create("m-2", "two", 2), edit("m-2", "2", 3)))
    kept = live.kept[3]
    found = rebuilt(kept, Rows(), live.journal, 4)
    window = texts.window(texts.shown(kept, found), lambda arrival: None)
    assert window == (WindowTurn("m-1", "ann", "one"),)


def test_a_window_has_the_last_twelve_survivors() -> None:
    turns = [create(f"m-{number}", "+1", number) for number in range(20)]
    live = Live(debate(*turns, delete("m-18", 30), create("late", "+1", 10.5)))
    shown = texts.shown(live.kept[0], rebuilt(live.kept[0], Rows(), live.journal, live.newest))
    names = [f"m-{number}" for number in (9, 10, "late", 11, 12, 13, 14, 15, 16, 17, 19)]
    assert [one.turn for one in shown][1:] == [name.replace("m-late", "late") for name in names]


def test_turns_that_were_waited_for_wait_no_more() -> None:
    live = Live(debate(delete("m-1"), edit("m-2", "x"), create("m-1", "+1", 1)))
    kept = live.kept[3]
    assert rebuild.arrived(kept, rebuilt(kept, Rows(), live.journal, 4)) == ("m-1",)
    assert rebuild.arrived(live.kept[0], rebuilt(live.kept[0], Rows(), live.journal, 4)) == ()


def test_pins_come_back_with_the_header() -> None:
    live = Live(debate(create("m-1", "+1", 1), pin(Stance.NEUTRAL), create("m-2", "-1", 2)))
    for first in range(3):
        found = rebuilt(live.kept[0], live.rows(), live.journal[first:], 4)
        assert found.header.pins == live.kept[4].conversation.header.pins != ()
