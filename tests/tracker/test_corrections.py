"""What each correction does to turns, window and events; and what waits for its turn."""

import datetime as dt

import msgspec
import pytest

from tests.tracker.correcting import Room, heard, reads
from tests.tracker.corrections import clear, delete, edit, erase, override, pin
from tests.tracker.driver import Marked, empty
from tests.tracker.strategies import PROPOSITIONS, at, create, debate, declare, target_of
from tracker.conversation import Header, Rules, state_before
from tracker.corrections import corrected, needs_ledger
from tracker.events import Event, EventType
from tracker.observations import Mark
from tracker.pins import MAX_PINS, Pin
from tracker.policy import Policy
from tracker.records import Reason, Record, Refused
from tracker.stances import Stance

TARGET = target_of(PROPOSITIONS[0])
RULES = Rules()


def room(*records: Record) -> Room:
    return Room(reader=Marked()).take(*debate(*records))


def kinds(events: list[Event]) -> list[str]:
    return [event.type.rpartition(".")[2] for event in events]


def stance(one: Room, holder: str = "ann") -> Stance:
    return state_before(one.conversation, holder, TARGET.id).stance


SPOKEN = (create("m-1", "+1", 1), create("m-2", "-1", 2))


def test_an_edit_is_read_anew_and_replaces_what_was_told() -> None:
    one = room(*SPOKEN).take(edit("m-2", "+1 after all", 3))
    assert stance(one) is Stance.SUPPORT
    assert kinds(one.outcomes[-1].events) == ["retracted"]
    (told,) = one.outcomes[-1].events
    assert (told.data.turn, told.data.revision, told.data.retracts) == ("m-2", 0, one.events[1].id)
    assert told.data.cause == one.outcomes[-1].entry.id
    assert [turn.text for turn in one.conversation.window] == ["+1", "+1 after all"]
    assert one.ledger[3].revision == one.outcomes[-1].entry.revision > 0


def test_an_edit_that_changes_no_stance_is_told_under_its_revision() -> None:
    one = room(*SPOKEN).take(edit("m-2", "-1 quite", 3, revision=4))
    retracted, flipped = one.outcomes[-1].events
    assert (retracted.data.revision, flipped.data.revision) == (0, 4)
    assert (flipped.type, flipped.time, retracted.time) == (EventType.FLIPPED, at(2), at(3))


@pytest.mark.parametrize(
    "record", [edit("m-1", "-1", 3, revision=1), edit("gone", "-1", 3), delete("gone", 3), delete("gone")]
)
def test_what_comes_too_late_for_its_turn_is_applied_and_changes_nothing(record: Record) -> None:
    before = room(*SPOKEN, create("gone", "hm", 2)).take(edit("m-1", "+1", 2, revision=2), delete("gone", 2))
    after = room(*SPOKEN, create("gone", "hm", 2)).take(edit("m-1", "+1", 2, revision=2), delete("gone", 2))
    after.take(msgspec.structs.replace(record, id="again"))
    assert after.conversation.header.version == before.conversation.header.version + 1
    assert (after.outcomes[-1].events, after.outcomes[-1].changed) == ((), ())
    assert after.conversation.holders == before.conversation.holders
    assert after.conversation.window == before.conversation.window


def test_an_edited_turn_that_has_left_the_window_is_read_from_its_edit() -> None:
    one = room(*(create(f"m-{at}", "+1", at) for at in range(14))).take(edit("m-0", "-1", 20))
    (read,) = reads(one.asked)[:1]
    assert (read.turn.turn, read.turn.text, read.window, read.needed) == ("m-0", "-1", (), True)
    assert kinds(one.outcomes[-1].events) == ["retracted", "established", "flipped"]
    assert len(one.conversation.window) == 12


def test_deleting_the_turn_that_established_a_stance_gives_unknown() -> None:
    one = room(create("m-1", "+1", 1), create("m-2", "hm", 2)).take(delete("m-1", 3))
    assert stance(one) is Stance.UNKNOWN
    assert one.conversation.holders["ann"] == {}
    assert one.outcomes[-1].forgotten == one.outcomes[-1].journal.forgotten == (("ann", TARGET.id),)
    assert [turn.turn for turn in one.conversation.window] == ["m-2"]


@pytest.mark.parametrize(("holder", "left"), [(None, []), ("bo", ["m-1"])])
def test_a_clear_takes_back_all_turns_or_a_holders(holder: str | None, left: list[str]) -> None:
    one = room(create("m-1", "+1", 1), create("m-2", "+1", 2, "bo"), create("m-3", "-1", 3, "bo"))
    one.take(clear(holder, seconds=4))
    assert [turn.turn for turn in one.conversation.window] == left
    assert [event.data.turn for event in heard(one.events).values()] == left
    assert one.outcomes[-1].journal.gone == ((3, 4) if holder else (2, 3, 4))
    assert stance(one, "bo") is Stance.UNKNOWN


def test_a_clear_takes_back_what_came_before_it_and_nothing_else() -> None:
    one = room(create("m-1", "+1", 1)).take(clear(seconds=5), create("m-2", "-1", 2))
    assert stance(one) is Stance.OPPOSE


def test_a_late_turn_is_folded_at_its_place_and_stands_there_in_the_window() -> None:
    one = room(create("m-1", "+1", 1), create("m-3", "-1", 3)).take(create("m-2", "+0", 2))
    assert [turn.turn for turn in one.conversation.window] == ["m-1", "m-2", "m-3"]
    told = sorted(heard(one.events).values(), key=lambda event: event.time)
    assert [(event.data.before, event.data.after) for event in told] == [
        ("unknown", "support"), ("support", "neutral"), ("neutral", "oppose"),
    ]  # fmt: skip
    assert [Mark.LATE in event.data.marks for event in told] == [False, True, False]
    assert one.conversation.header.newest == at(3)
    assert [len(read.window) for read in reads(one.asked)] == [1, 2]


def test_a_late_turn_older_than_a_full_window_is_read_and_stays_out_of_it() -> None:
    one = room(*(create(f"m-{at}", "hm", 10 + at) for at in range(12))).take(create("old", "+1", 5))
    assert stance(one) is Stance.SUPPORT
    assert "old" not in {turn.turn for turn in one.conversation.window}


def test_a_late_turn_older_than_what_is_left_of_the_ledger_is_too_late() -> None:
    one = room(*SPOKEN)
    ledger = {arrival: entry for arrival, entry in one.ledger.items() if arrival > 2}
    for turn, refused in ((create("m-3", "+1", 1.5), True), (create("m-3", "+1", 2), False)):
        if refused:
            with pytest.raises(Refused) as error:
                corrected(one.conversation, ledger, turn, None, RULES)
            assert error.value.reason is Reason.TOO_LATE
        else:
            assert corrected(one.conversation, ledger, turn, None, RULES).touched == "ann"


@pytest.mark.parametrize(
    "record", [delete("m-1", 9), clear("ann", seconds=9), clear(seconds=9), erase("ann")]
)
def test_a_turn_beyond_the_ledgers_reach_still_leaves_the_window(record: Record) -> None:
    one = room(*SPOKEN)
    one.ledger.clear()
    one.take(record)
    assert "m-1" not in {seen.turn for seen in one.conversation.window}


def test_an_edit_beyond_the_ledgers_reach_still_changes_what_is_shown() -> None:
    one = room(*SPOKEN)
    one.ledger.clear()
    one.take(edit("m-1", "+0", 9))
    assert [seen.text for seen in one.conversation.window] == ["+0", "-1"]
    assert (one.outcomes[-1].entry.waits, one.outcomes[-1].entry.text, stance(one)) == (
        False, None, Stance.OPPOSE,
    )  # fmt: skip


def test_a_late_turn_of_an_exempt_holder_is_not_read() -> None:
    one = Room(rules=Rules(policy=Policy(exempt_holders=frozenset({"ann"}))), reader=Marked())
    one.take(*debate(create("m-1", "+1", 9, "bo"), create("m-2", "+1", 5)))
    assert (one.asked, one.ledger[3].observations) == ([], ())


def test_with_persisted_a_late_turn_tells_of_every_target() -> None:
    one = Room(rules=Rules(persisted=True), reader=Marked())
    bot = create("m-3", "hm", 3, holder_kind="bot")
    one.take(*debate(declare("other"), create("m-1", "+1", 9), create("m-2", "hm", 5), bot))
    assert [kinds(list(outcome.events)) for outcome in one.outcomes[-2:]] == [["persisted"] * 2] * 2


def test_a_retraction_is_of_the_revision_that_was_told() -> None:
    one = room(create("m-1", "+1", 1), edit("m-1", "-1", 2, revision=5), edit("m-1", "+0", 3, revision=7))
    taken_back = [event for event in one.events if event.type is EventType.RETRACTED]
    assert [event.data.revision for event in taken_back] == [0, 5]


def test_with_persisted_an_unread_turn_says_nothing_of_a_pinned_state() -> None:
    one = Room(rules=Rules(persisted=True), reader=Marked())
    one.take(*debate(pin(Stance.OPPOSE), create("m-1", "hm", 1, holder_kind="bot")))
    assert one.outcomes[-1].events == ()


def test_with_persisted_a_turn_that_a_persons_word_left_as_it_was_tells_whose_and_why() -> None:
    one = Room(rules=Rules(persisted=True), reader=Marked())
    word = override(Stance.SUPPORT, turn="m-2")
    one.take(*debate(create("m-1", "+1", 1), word, create("m-2", "-1", 2)))
    (told,) = one.outcomes[-1].events
    assert (told.type, told.data.by, told.data.reason) == (EventType.PERSISTED, "mod", "because")


@pytest.mark.parametrize(
    ("early", "left"),
    [
        ([edit("m-1", "-1", 1)], Stance.OPPOSE),
        ([edit("m-1", "-1", 1, revision=9), edit("m-1", "+0", 2, revision=8)], Stance.OPPOSE),
        ([edit("m-1", "-1", 1), delete("m-1", 2)], Stance.UNKNOWN),
        ([override(Stance.NEUTRAL, turn="m-1")], Stance.NEUTRAL),
        ([override(Stance.NEUTRAL, turn="m-1"), override(None, "lifted", turn="m-1")], Stance.SUPPORT),
    ],
)
def test_a_correction_of_an_unseen_turn_waits_for_its_create(early: list[Record], left: Stance) -> None:
    one = room(*early)
    assert all(one.ledger[arrival].waits for arrival in range(2, 2 + len(early)))
    one.take(create("m-1", "+1", 3))
    assert stance(one) is left
    assert not any(entry.waits or entry.text for entry in one.ledger.values())
    assert len(one.conversation.window) == (left is not Stance.UNKNOWN)
    assert len(one.events) == (left is not Stance.UNKNOWN)


def test_a_waiting_edits_text_stands_in_the_ledger_alone() -> None:
    (outcome,) = room(edit("m-1", "my very own words", 1)).outcomes[-1:]
    assert outcome.entry.text == "my very own words"
    assert b"my very own" not in msgspec.json.encode(outcome.journal)


@pytest.mark.parametrize(
    ("record", "needed"),
    [
        (create("m-9", seconds=5), False),
        (create("m-9", seconds=4.9), True),
        (create("m-9", seconds=60), True),  # a pin has expired
        (declare("other", seconds=1), False),
        (declare("other", seconds=60), True),
        (edit("m-9", "hm", 9), True),
        (delete("m-9", 9), True),
        (clear(), True),
        (erase("ann"), True),
        (override(None, turn="m-9"), True),
        (pin(None), True),
    ],
)
def test_what_takes_the_ledger(record: Record, needed: bool) -> None:
    pins = (Pin("bo", TARGET.id, Stance.OPPOSE, 1, at(60)), Pin("ann", TARGET.id, Stance.OPPOSE, 2))
    assert needs_ledger(Header(newest=at(5), pins=pins), record, None, RULES) is needed


def test_a_correction_beyond_the_reach_is_too_late() -> None:
    receipt = at(0) + dt.timedelta(days=8)
    with pytest.raises(Refused) as refused:
        corrected(empty(), {}, delete("m-1"), receipt, RULES)
    assert refused.value.reason is Reason.TOO_LATE


def test_only_a_declared_targets_state_can_be_pinned() -> None:
    with pytest.raises(Refused) as refused:
        corrected(empty(), {}, pin(Stance.OPPOSE), None, RULES)
    assert (refused.value.reason, refused.value.field) == (Reason.UNKNOWN_TARGET, "target")


def test_pins_are_bounded() -> None:
    one = room(*(pin(Stance.OPPOSE, f"p-{at}", holder=f"u-{at}") for at in range(MAX_PINS)))
    assert len(one.conversation.header.pins) == MAX_PINS
    with pytest.raises(Refused) as refused:
        one.refold(pin(Stance.OPPOSE, "one more", holder="u-x"))
    assert refused.value.reason is Reason.TOO_MANY_PINS
    assert one.refold(pin(Stance.SUPPORT, "in its place", holder="u-0")).events
