"""A refold comes to what a fresh fold of the surviving turns comes to, and tells just the difference."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tracker.correcting import Room, heard, reads
from tests.tracker.corrections import ALL, TAKEN, declared, delete, logs, survivors
from tests.tracker.driver import Marked, Moody, play
from tests.tracker.strategies import HOLDERS, PROPOSITIONS, at, create, debate, declare
from tracker.conversation import Conversation, state_before
from tracker.events import EventType
from tracker.folding import said
from tracker.ledger import LedgerEntry, Word
from tracker.machine import StanceState
from tracker.observations import Mark, Observation
from tracker.records import CreateTurn, Record, TargetStatus
from tracker.stances import Stance
from tracker.targets import Target


def states(conversation: Conversation) -> dict[tuple[str, str], StanceState]:
    return {
        (holder, target.id): state_before(conversation, holder, target.id)
        for holder in HOLDERS
        for target in conversation.header.targets
    }


def moves(events: Any) -> list[tuple[object, ...]]:
    """What events say of turns, whatever record led to them."""
    return sorted(
        (str(one.data.turn), one.data.revision, one.data.holder, one.data.target.id, one.type,
         one.data.before, one.data.after)
        for one in events
        if one.type in {EventType.ESTABLISHED, EventType.FLIPPED}
    )  # fmt: skip


class Worded(Moody):
    """Reads as a moody reader does, but for turns on which a person has spoken."""

    def __init__(self, words: dict[str, Stance]) -> None:
        self.words = words

    def observe(self, turn: CreateTurn, target: Target, state: Stance) -> Observation:
        read = super().observe(turn, target, state)
        word = self.words.get(turn.turn)
        return read if word is None else said(read, Word("mod", "because", word))

    def explain(self, fold: Any) -> Any:
        told = super().explain(fold)
        return msgspec.structs.replace(told, refined=None) if fold.observation.turn in self.words else told


def fresh(records: list[Record]) -> list[Any]:
    turns, words = survivors(records)
    return play([*declared(records), *turns], reader=Worded(words))


@given(logs(*TAKEN))
def test_a_refold_equals_a_fresh_fold_of_what_survives(records: list[Record]) -> None:
    room, again = Room().take(*records), fresh(records)
    assert states(room.conversation) == states(again[-1].conversation)
    assert moves(heard(room.events).values()) == moves(event for one in again for event in one.events)
    assert [(turn.text, turn.sides) for turn in room.conversation.window] == [
        (turn.text, turn.sides) for turn in again[-1].conversation.window
    ]


@given(logs(*ALL))
def test_pins_change_no_fold(records: list[Record]) -> None:
    assert states(Room().take(*records).conversation) == states(fresh(records)[-1].conversation)


def in_order(records: list[Record]) -> list[Record]:
    """Nothing late, and no correction before its turn."""
    known, found, newest = set(), [], at(0)
    for record in records:
        newest = max(newest, record.sent_at)
        if isinstance(record, CreateTurn):
            known.add(record.turn)
        if getattr(record, "turn", None) is None or record.turn in known:
            found.append(msgspec.structs.replace(record, sent_at=newest))
    return found


@given(logs(*TAKEN, replacing=True).map(in_order))
def test_what_a_target_carries_over_is_folded_anew(records: list[Record]) -> None:
    room = Room().take(*records)
    turns, words = survivors(records)
    left = {turn.turn: turn for turn in turns}
    log = [
        left.get(record.turn) if isinstance(record, CreateTurn) else record
        for record in records
        if isinstance(record, CreateTurn) or record in declared(records)
    ]
    again = play([record for record in log if record is not None], reader=Worded(words))
    assert states(room.conversation) == states(again[-1].conversation)
    assert moves(heard(room.events).values()) == moves(event for one in again for event in one.events)


@given(logs(*ALL))
def test_a_subscriber_ends_with_exactly_the_standing_events(records: list[Record]) -> None:
    room = Room().take(*records)
    assert heard(room.events).keys() == room.standing


@given(logs(*ALL))
def test_the_sequence_stays_gapless_and_previous_chains_the_flips_topic(records: list[Record]) -> None:
    room, number, last, flips = Room().take(*records), 0, 0, set()
    for event in room.events:
        number += 1
        assert event.sequence == f"{number:020}"
        in_flips = event.type is EventType.FLIPPED or event.data.retracts in flips
        assert event.previous == (f"{last:020}" if in_flips else msgspec.UNSET)
        last = number if in_flips else last
        flips |= {event.id} if event.type is EventType.FLIPPED else set()
    assert len({event.id for event in room.events}) == number
    assert (room.conversation.header.sequence, room.conversation.header.flip_sequence) == (number, last)


@given(logs(*ALL), st.data())
def test_a_record_applied_twice_changes_nothing(records: list[Record], data: st.DataObject) -> None:
    often = data.draw(st.lists(st.sampled_from(records), max_size=6)) if records else []
    once, twice = Room().take(*records), Room().take(*records, *often)
    assert (twice.conversation, twice.ledger, twice.events) == (once.conversation, once.ledger, once.events)


@given(logs(*ALL))
def test_a_conversation_stored_between_any_two_records_comes_to_the_same(records: list[Record]) -> None:
    whole, parts = Room().take(*records), Room()
    for record in records:
        parts.take(record)
        parts.conversation = msgspec.json.decode(msgspec.json.encode(parts.conversation), type=Conversation)
        parts.ledger = msgspec.json.decode(msgspec.json.encode(parts.ledger), type=type_of(parts))
    assert (parts.conversation, parts.ledger, parts.events) == (
        whole.conversation,
        whole.ledger,
        whole.events,
    )


def type_of(room: Room) -> Any:

    return dict[int, LedgerEntry]


@given(logs(*ALL))
def test_a_turn_is_read_again_only_where_its_text_or_the_state_before_it_changed(
    records: list[Record],
) -> None:
    room = Room()
    for record in records:
        before = {
            (entry.turn, one.target): one.read_under
            for entry in room.ledger.values()
            for one in entry.observations
        }
        room.asked.clear()
        room.take(record)
        own = getattr(record, "turn", None)
        for read in reads(room.asked):
            assert read.turn.turn == own or before[read.turn.turn, read.target.id] is not read.state


many = st.lists(st.sampled_from(["+1", "-1", "+0", "hm"]), min_size=15, max_size=40)


@given(many, st.data())
def test_beyond_the_window_a_reader_that_heeds_no_state_leaves_nothing_to_differ(
    texts: list[str], data: st.DataObject
) -> None:
    turns = [create(f"m-{at}", text, at) for at, text in enumerate(texts)]
    gone = data.draw(st.lists(st.sampled_from(turns), unique=True, max_size=5))
    room = Room(reader=Marked()).take(*debate(*turns), *(delete(turn.turn, 99) for turn in gone))
    again = play(debate(*(turn for turn in turns if turn not in gone)), reader=Marked())
    assert states(room.conversation) == states(again[-1].conversation)
    assert moves(heard(room.events).values()) == moves(event for one in again for event in one.events)
    window = {turn.turn for turn in turns[-12:]}
    assert {read.turn.turn for read in reads(room.asked)} <= window
    for entry in room.ledger.values():
        for seen, under in zip(entry.observations, entry.folded_under, strict=True):
            assert (Mark.STALE in seen.marks) is (seen.read_under is not under)


@given(many, st.integers(0, 13), st.integers(0, 14))
def test_what_the_ledger_has_dropped_stays_as_it_was_folded(texts: list[str], drop: int, late: int) -> None:
    """A ledger that reaches back only so far: the states before it hold, and what it has is folded on."""
    turns = [create(f"m-{at}", text, 10 * at) for at, text in enumerate(texts)]
    room, whole = (Room(reader=Marked()).take(*debate(*turns)) for _ in range(2))
    room.ledger = {arrival: entry for arrival, entry in room.ledger.items() if arrival > drop + 1}
    deleted = delete(f"m-{drop + late % (len(turns) - drop)}", 999)
    for one in (room, whole):
        one.take(deleted, create("late", "+0", 10 * (len(turns) - 1) - 5))
    were, are = states(whole.conversation), states(room.conversation)
    assert {key: (one.stance, one.flips) for key, one in are.items()} == {
        key: (one.stance, one.flips) for key, one in were.items()
    }


@pytest.mark.parametrize("status", list(TargetStatus))
def test_a_target_declared_again_within_the_ledgers_reach_keeps_what_is_older(status: TargetStatus) -> None:
    again = declare(PROPOSITIONS[0], "again", 3, status=status)
    one = Room(reader=Marked()).take(*debate(create("m-1", "+1", 1), again, create("m-3", "hm", 4)))
    one.ledger = {arrival: entry for arrival, entry in one.ledger.items() if arrival > 2}
    before = states(one.conversation)
    one.take(delete("m-3", 5))
    assert states(one.conversation) == before
    assert one.outcomes[-1].forgotten == ()
