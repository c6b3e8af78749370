"""Ledger and journal entries: all that a rebuild needs, through JSON, and without text."""

import msgspec
import pytest
from hypothesis import given

from tests.tracker.driver import Marked, play
from tests.tracker.strategies import PROPOSITIONS, at, create, declare, dialogues, target_of
from tracker.conversation import Header
from tracker.ledger import JournalEntry, LedgerEntry
from tracker.machine import StanceState
from tracker.records import Media, Modality, Record
from tracker.settlement import Outcome

SECRET = "my very own words"


def _turn_with_secrets(turn: str, start: str, seconds: float) -> Record:
    media = (Media(Modality.IMAGE, description=SECRET),)
    return create(turn, f"{start} {SECRET}", seconds, display_name=SECRET, media=media, revision=2)


def _flip() -> Outcome:
    turns = [_turn_with_secrets("m-1", "+1", 1), _turn_with_secrets("m-2", "-1", 2)]
    return play([declare(PROPOSITIONS[0], "d-1"), *turns], reader=Marked())[-1]


def test_a_turns_entry_is_compact_and_complete() -> None:
    entry = _flip().journal.entry
    assert (entry.id, entry.op, entry.turn, entry.revision) == ("create/m-2/2", "create", "m-2", 2)
    assert (entry.holder, entry.sent_at, entry.arrival) == ("ann", at(2), 3)
    assert [observation.expressed.oppose for observation in entry.observations] == [1.0]


def test_a_target_records_entry_has_no_turn() -> None:
    entry = play([declare(PROPOSITIONS[0], "d-1")])[0].journal.entry
    target = target_of(PROPOSITIONS[0]).id
    assert entry == LedgerEntry(id="d-1", op="target", arrival=1, sent_at=at(0), target=target)
    assert msgspec.to_builtins(entry).keys() == {"id", "op", "arrival", "sent_at", "target"}  # compact


def test_the_journal_carries_source_explanations_states_and_header() -> None:
    outcome = _flip()
    journal = outcome.journal
    assert (journal.tenant, journal.run, journal.conversation) == ("default", "live", "room-7")
    assert journal.source == "volteface.turns/0/1"
    assert [told.turn for told in journal.entry.explanations] == ["m-2"]
    assert journal.states == outcome.states
    assert journal.header == outcome.conversation.header
    assert (journal.header.sequence, journal.header.flip_sequence) == (2, 2)


@pytest.mark.parametrize("part", ["entry", "journal"])
def test_neither_has_text(part: str) -> None:
    journal = _flip().journal
    encoded = msgspec.json.encode(journal if part == "journal" else journal.entry)
    assert SECRET.encode() not in encoded


@given(dialogues())
def test_entries_survive_json_and_msgpack(records: list[Record]) -> None:
    for outcome in play(records):
        journal = outcome.journal
        for codec in (msgspec.json, msgspec.msgpack):
            assert codec.decode(codec.encode(journal), type=JournalEntry) == journal
            assert codec.decode(codec.encode(journal.entry), type=LedgerEntry) == journal.entry


@given(dialogues())
def test_states_and_header_can_be_put_back_from_the_journal(records: list[Record]) -> None:
    outcomes = play(records)
    states: dict[str, dict[str, StanceState]] = {}
    header = Header()
    for outcome in outcomes:
        entry = msgspec.json.decode(msgspec.json.encode(outcome.journal), type=JournalEntry)
        header = entry.header
        for moved in entry.states:
            states.setdefault(moved.holder, {})[moved.target] = moved.state
    assert header == outcomes[-1].conversation.header
    assert states == outcomes[-1].conversation.holders
