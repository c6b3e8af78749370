"""What holds, what is retracted and what is told anew: words, pins, erasure, and what events quote."""

from typing import Any

import msgspec
import pytest

from tests.tracker.correcting import Room, heard, reads
from tests.tracker.corrections import clear, delete, edit, erase, override, pin
from tests.tracker.driver import Marked, explanation
from tests.tracker.strategies import PROPOSITIONS, at, create, debate, declare, target_of
from tracker.conversation import Folded, state_before
from tracker.events import Event, EventType
from tracker.observations import Evidence, Explanation, Trigger
from tracker.records import Record
from tracker.stances import Stance, TriggerKind

TARGET = target_of(PROPOSITIONS[0])
SUPPORT, OPPOSE, NEUTRAL, UNKNOWN = Stance.SUPPORT, Stance.OPPOSE, Stance.NEUTRAL, Stance.UNKNOWN


class Quoting(Marked):
    """Says that everybody is moved by bo's m-2, and quotes it."""

    def explain(self, fold: Folded) -> Explanation:
        told = explanation(fold)
        trigger = Trigger(TriggerKind.FACTUAL_LOGICAL, ("m-2", "m-1"), ("bo", "ann"), 0.7)
        evidence = (Evidence("m-2", "text"), Evidence(told.turn, "text"))
        return msgspec.structs.replace(told, trigger=trigger, evidence=evidence, rationale="bo said so")


def room(*records: Record, reader: Any = None) -> Room:
    return Room(reader=reader or Marked()).take(*debate(*records))


def told(one: Room) -> list[tuple[str, Stance, Stance]]:
    """What the last record led to."""
    return [
        (event.type.rpartition(".")[2], event.data.before, event.data.after)
        for event in one.outcomes[-1].events
    ]


def test_a_persons_word_on_a_turn_replaces_what_it_expresses_and_is_named() -> None:
    one = room(create("m-1", "+1", 1)).take(override(OPPOSE, turn="m-1", seconds=2))
    assert told(one) == [("retracted", UNKNOWN, SUPPORT), ("established", UNKNOWN, OPPOSE)]
    data = one.outcomes[-1].events[1].data
    assert (data.by, data.reason, data.confidence) == ("mod", "because", 1.0)
    assert one.ledger[2].observations[0].expressed.support == 1.0  # what was read is kept
    one.take(override(None, "lifted", 3, turn="m-1"))
    assert told(one) == [("retracted", UNKNOWN, OPPOSE), ("established", UNKNOWN, SUPPORT)]
    assert reads(one.asked) == []


def test_a_word_that_says_what_was_read_repeats_nothing() -> None:
    one = room(create("m-1", "+1", 1)).take(override(SUPPORT, turn="m-1", seconds=2))
    assert told(one) == []


def test_a_word_of_unknown_says_that_nothing_was_expressed() -> None:
    one = room(create("m-1", "+1", 1)).take(override(UNKNOWN, turn="m-1", seconds=2))
    assert told(one) == [("retracted", UNKNOWN, SUPPORT)]


def test_a_flip_by_a_persons_word_is_explained_by_nobody() -> None:
    one = room(create("m-1", "+1", 1), create("m-2", "hm", 2)).take(override(OPPOSE, turn="m-2", seconds=3))
    (event,) = one.outcomes[-1].events
    assert (event.type, event.data.trigger) == (EventType.FLIPPED, msgspec.UNSET)
    assert one.asked == []


def test_a_persons_word_takes_the_explanation_of_what_was_read_with_it_and_gives_it_back() -> None:
    one = room(create("m-1", "+1", 1), create("m-2", "-1", 2)).take(override(NEUTRAL, turn="m-2", seconds=3))
    (_, event) = one.outcomes[-1].events
    assert (event.data.after, event.data.trigger, event.data.by) == (NEUTRAL, msgspec.UNSET, "mod")
    one.take(override(None, "lifted", 4, turn="m-2"))
    assert (one.events[-1].data.after, one.events[-1].data.trigger) == (OPPOSE, one.events[1].data.trigger)
    assert one.asked == []


def test_an_edit_under_a_word_is_read_for_when_it_is_lifted() -> None:
    one = room(create("m-1", "+1", 1)).take(override(NEUTRAL, turn="m-1", seconds=2), edit("m-1", "-1", 3))
    assert state_before(one.conversation, "ann", TARGET.id).stance is NEUTRAL
    one.take(override(None, "lifted", 4, turn="m-1"))
    assert state_before(one.conversation, "ann", TARGET.id).stance is OPPOSE


def test_a_pin_holds_while_turns_fold_beneath_it_in_silence() -> None:
    one = room(create("m-1", "+1", 1)).take(pin(OPPOSE, seconds=2))
    assert told(one) == [("overridden", SUPPORT, OPPOSE)]
    data = one.outcomes[-1].events[0].data
    assert (data.by, data.reason, data.turn, data.expires_at) == (
        "mod", "because", msgspec.UNSET, msgspec.UNSET,
    )  # fmt: skip
    one.take(create("m-2", "+0", 3), create("m-3", "hm", 4, "bo"))
    assert [outcome.events for outcome in one.outcomes[-2:]] == [(), ()]
    one.take(pin(None, "lift", 5))
    assert told(one) == [("restored", OPPOSE, NEUTRAL)]
    one.take(create("m-4", "+1", 6))
    assert told(one) == [("flipped", NEUTRAL, SUPPORT)]
    one.take(pin(None, "lift again", 7))
    assert told(one) == []


@pytest.mark.parametrize(("seconds", "ends"), [(59.9, False), (60, True)])
@pytest.mark.parametrize("kind", ["turn", "target", "other"])
def test_the_first_record_at_or_after_its_expiry_unpins(kind: str, seconds: float, ends: bool) -> None:
    one = room(create("m-1", "+1", 1)).take(pin(OPPOSE, seconds=2, expires_at=at(60)))
    assert one.events[-1].data.expires_at == at(60)
    last: dict[str, Record] = {
        "turn": create("m-2", "+0", seconds),
        "target": declare("other", seconds=seconds),
        "other": create("m-2", "hm", seconds, "bo"),
    }
    one.take(last[kind])
    flip = [("flipped", SUPPORT, NEUTRAL)] if kind == "turn" else []
    assert told(one) == ([("restored", OPPOSE, SUPPORT), *flip] if ends else [])
    assert (one.conversation.header.pins == ()) is ends


def test_a_pin_in_the_place_of_another_goes_on_from_it() -> None:
    one = room(pin(OPPOSE, seconds=1)).take(pin(SUPPORT, "again", 2, expires_at=at(9)))
    assert told(one) == [("overridden", OPPOSE, SUPPORT)]
    one.take(pin(NEUTRAL, "third", 9))
    assert told(one) == [("overridden", SUPPORT, NEUTRAL)]


def test_what_stood_before_a_pin_is_still_retracted_beneath_it() -> None:
    one = room(create("m-1", "+1", 1)).take(pin(OPPOSE, seconds=2), delete("m-1", 3))
    assert told(one) == [("retracted", UNKNOWN, SUPPORT)]


def test_a_pin_restored_to_what_no_longer_holds_is_restored_anew() -> None:
    one = room(create("m-1", "+1", 1)).take(pin(OPPOSE, seconds=2), create("m-2", "+0", 3))
    one.take(pin(None, "lift", 4), delete("m-2", 5))
    assert told(one) == [("retracted", OPPOSE, NEUTRAL), ("restored", OPPOSE, SUPPORT)]
    assert len(heard(one.events)) == 3


def test_a_turn_that_came_beneath_a_pin_stays_silent_when_it_is_folded_anew() -> None:
    one = room(create("m-1", "+1", 1)).take(pin(OPPOSE, seconds=2), create("m-2", "+0", 3))
    one.take(pin(None, "lift", 4), edit("m-1", "-1", 5))
    assert told(one) == [("retracted", UNKNOWN, SUPPORT), ("established", UNKNOWN, OPPOSE)]
    assert state_before(one.conversation, "ann", TARGET.id).stance is NEUTRAL


def test_erasing_a_person_forgets_states_turns_and_names() -> None:
    one = room(create("m-1", "+1", 1, "bo"), pin(NEUTRAL, seconds=2, holder="bo"), create("m-3", "hm", 3))
    one.take(erase("bo", seconds=4))
    assert told(one) == [
        ("retracted", UNKNOWN, SUPPORT), ("retracted", SUPPORT, NEUTRAL), ("forgotten", NEUTRAL, UNKNOWN),
    ]  # fmt: skip
    assert heard(one.events) == {}
    assert one.conversation.header.pins == ()
    assert b'"bo"' not in msgspec.json.encode((one.ledger, one.conversation.window, one.conversation.header))
    one.take(create("m-4", "-1", 5, "bo"))
    assert told(one) == [("established", UNKNOWN, OPPOSE)]


TALK = (create("m-1", "+1", 1), create("m-2", "-1", 2, "bo"), create("m-3", "-1", 3))


@pytest.mark.parametrize("record", [delete("m-2", 4), clear("bo", seconds=4), erase("bo", seconds=4)])
def test_what_quotes_a_turn_that_is_gone_is_told_anew_without_it(record: Record) -> None:
    one = room(*TALK, reader=Quoting()).take(record)
    flips = [event for event in one.outcomes[-1].events if event.data.turn == "m-3"]
    assert [event.type for event in flips] == [EventType.RETRACTED, EventType.FLIPPED]
    data = flips[1].data
    assert (data.trigger, data.rationale, data.evidence) == (
        Trigger(TriggerKind.FACTUAL_LOGICAL, ("m-1",), ("ann",), 0.7), "", (Evidence("m-3", "text"),),
    )  # fmt: skip
    assert one.ledger[4].explanations[0].rationale == ""
    assert reads(one.asked) == []
    assert "bo" not in str(msgspec.to_builtins(heard(one.events)))


def test_what_quotes_nothing_of_it_is_not_repeated() -> None:
    one = room(*TALK, create("m-4", "-1", 4, "bo"), reader=Quoting()).take(delete("m-4", 5))
    assert told(one) == []


def test_a_retraction_repeats_what_it_takes_back_and_says_why() -> None:
    one = room(*TALK).take(delete("m-3", 4, id="because of this"))
    flipped, retracted = one.events[-2:]
    assert (retracted.data.retracts, retracted.data.cause) == (flipped.id, "because of this")
    assert (retracted.subject, retracted.data.turn, retracted.time) == (flipped.subject, "m-3", at(4))
    assert (flipped.previous, retracted.previous) == (f"{0:020}", flipped.sequence)


def test_a_flip_that_became_another_is_explained_anew_under_its_new_state() -> None:
    one = room(create("m-1", "+1", 1), create("m-2", "-1", 2)).take(edit("m-1", "+0", 3))
    assert told(one) == [
        ("retracted", UNKNOWN, SUPPORT), ("retracted", SUPPORT, OPPOSE),
        ("established", UNKNOWN, NEUTRAL), ("flipped", NEUTRAL, OPPOSE),
    ]  # fmt: skip
    assert [event.data.trigger is msgspec.UNSET for event in one.outcomes[-1].events[2:]] == [True, False]


def events_of(one: Room, kind: EventType) -> list[Event]:
    return [event for event in one.events if event.type is kind]


def test_retractions_of_all_pins_of_an_erased_person_have_ids_of_their_own() -> None:
    one = room(pin(OPPOSE, seconds=1), pin(None, "lift", 2), pin(OPPOSE, "again", 3), erase("ann", seconds=4))
    ids = [event.id for event in events_of(one, EventType.RETRACTED)]
    assert len(set(ids)) == len(ids) == 3
