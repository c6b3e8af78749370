from collections.abc import Mapping

from stream.lost import Lost, waves
from stream.store.port import ConversationKey
from tests.stream.fakes import START
from tracker.conversation import Header
from tracker.ledger import JournalEntry, LedgerEntry

A, B = ConversationKey("default", "a"), ConversationKey("default", "b")


def entry(arrival: int, ident: str = "", room: str = "a") -> JournalEntry:
    ledger = LedgerEntry(id=ident or f"r{arrival}", op="create", arrival=arrival, sent_at=START)
    return JournalEntry(
        tenant="default", run="r", conversation=room, source="", entry=ledger, header=Header(version=arrival)
    )


def stored(a: int = 0, *applied: str) -> Mapping[ConversationKey, tuple[int, frozenset[str]]]:
    return {A: (a, frozenset(applied)), B: (0, frozenset())}


def ids(lost: Lost) -> list[list[str]]:
    return [[one.entry.id for one in wave] for chunk in lost.chunks(100) for wave in waves(chunk)]


def test_what_the_store_has_is_not_lost() -> None:
    lost = Lost()
    assert not lost.add({0: entry(1), 1: entry(2)}, stored(2))
    assert len(lost) == 0
    assert lost.gaps == 0
    assert ids(lost) == []


def test_waves_take_one_of_each_conversation_by_arrival_whatever_their_order_in_the_log() -> None:
    lost = Lost()
    assert lost.add({5: entry(3), 6: entry(1, room="b"), 7: entry(2)}, stored(1))
    assert [sorted(wave) for wave in ids(lost)] == [["r1", "r2"], ["r3"]]


def test_what_is_missing_before_is_a_gap_until_it_is_found_further_back() -> None:
    lost = Lost()
    lost.add({9: entry(4)}, stored(1))
    assert lost.gaps == 2
    lost.add({7: entry(2), 8: entry(3)}, stored(1))
    assert lost.gaps == 0
    assert ids(lost) == [["r2"], ["r3"], ["r4"]]


def test_a_stretch_without_anything_new_adds_nothing() -> None:
    lost = Lost()
    lost.add({9: entry(2)}, stored(1))
    assert not lost.add({3: entry(1)}, stored(1))


def test_the_later_of_two_courses_of_things_counts() -> None:
    """Writes were lost once, unnoticed, and others took their places."""
    lost = Lost()
    lost.add({8: entry(2, "new")}, stored(1))
    lost.add({3: entry(2, "old"), 4: entry(3, "old-3")}, stored(1))
    assert ids(lost) == [["new"], ["old-3"]]


def test_a_record_that_was_applied_at_another_place_is_there_and_no_gap() -> None:
    lost = Lost()
    lost.add({3: entry(2, "x"), 4: entry(3, "y")}, stored(1, "x"))
    assert ids(lost) == [["y"]]
    assert lost.gaps == 0


def test_an_entry_that_was_sent_twice_counts_once() -> None:
    lost = Lost()
    lost.add({3: entry(2), 4: entry(2)}, stored(1))
    assert ids(lost) == [["r2"]]


def test_chunks_are_in_the_logs_order_so_that_a_break_leaves_its_end() -> None:
    """By waves over everything, a long conversation would be left behind shorter ones that came after it."""
    lost = Lost()
    lost.add({at: entry(at) for at in range(1, 5)} | {5: entry(1, "late", room="b")}, stored(0))
    found = [[one.entry.id for one in chunk] for chunk in lost.chunks(3)]
    assert found == [["r1", "r2", "r3"], ["r4", "late"]]


def test_an_arrival_never_comes_before_those_it_stands_on_whatever_was_sent_first() -> None:
    lost = Lost()
    lost.add({4: entry(2), 5: entry(1, "b1", room="b"), 6: entry(1)}, stored(0))
    assert [one.entry.id for chunk in lost.chunks(9) for one in chunk] == ["b1", "r1", "r2"]


def test_a_version_that_moves_while_it_is_looked_at_hides_no_gap() -> None:
    lost = Lost()
    lost.add({9: entry(4)}, stored(1))
    lost.add({3: entry(9, room="b")}, {A: (3, frozenset()), B: (0, frozenset())})
    assert lost.gaps == 2 + 8
