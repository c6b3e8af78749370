"""How one holder's turns are folded anew: what is asked, what is stale, and what a reader cannot read."""

import msgspec
import pytest

from tests.tracker.correcting import Room, heard
from tests.tracker.corrections import delete, edit, override
from tests.tracker.driver import Marked
from tests.tracker.strategies import PROPOSITIONS, create, debate, declare, observe, target_of
from tracker.conversation import Rules, WrongObservation, state_before
from tracker.folding import Question, Read, said
from tracker.ledger import Word
from tracker.observations import Mark, Probabilities
from tracker.records import Reason, Record, Refused, TargetStatus
from tracker.refold import Refold
from tracker.stances import Expressed, Stance

TARGET = target_of(PROPOSITIONS[0])


def room(*records: Record) -> Room:
    return Room(reader=Marked()).take(*debate(*records))


def refold(one: Room, record: Record) -> Refold:
    return Refold(one.conversation, one.ledger, record, None, Rules())


def long() -> Room:
    """ann says +1, then -1, then nobody but bo speaks until all that is out of the window."""
    said = (create(f"b-{at}", "hm", 10 + at, "bo") for at in range(12))
    return room(create("m-1", "+1", 1), create("m-2", "-1", 2), *said)


def test_a_turn_out_of_the_window_is_folded_as_it_was_read_and_marked_stale() -> None:
    one = long().take(delete("m-1", 99))
    assert one.asked == []
    (told,) = heard(one.events).values()
    assert (told.data.turn, told.data.before, told.data.marks) == ("m-2", "unknown", (Mark.STALE,))
    entry = one.ledger[3]
    assert (entry.observations[0].marks, entry.under) == ((Mark.STALE,), (Stance.UNKNOWN,))


def test_a_stale_flip_is_not_explained_by_what_explained_another() -> None:
    one = long().take(override(Stance.NEUTRAL, turn="m-1", seconds=99))
    told = next(event for event in heard(one.events).values() if event.data.turn == "m-2")
    assert (told.data.before, told.data.after, told.data.trigger) == ("neutral", "oppose", msgspec.UNSET)


def test_a_target_that_took_over_an_unknown_state_keeps_it_when_the_other_moves_on() -> None:
    second, retired = PROPOSITIONS[1], {"status": TargetStatus.RETIRED}
    one = room(
        declare(second, replaces=TARGET.id),
        declare(second, "retire", **retired),
        declare(PROPOSITIONS[0], "back"),
    )
    one.take(create("m-1", "+1", 1), edit("m-1", "-1", 2))
    assert state_before(one.conversation, "ann", TARGET.id).stance is Stance.OPPOSE
    assert state_before(one.conversation, "ann", target_of(second).id).stance is Stance.UNKNOWN


def test_what_is_read_under_its_state_again_is_stale_no_more_and_keeps_its_explanation() -> None:
    one = long().take(override(Stance.UNKNOWN, turn="m-1", seconds=99))
    assert one.ledger[3].under == (Stance.UNKNOWN,)
    one.take(override(None, "lifted", 100, turn="m-1"))
    assert (one.ledger[3].observations[0].marks, one.ledger[3].under) == ((), ())
    assert [event.data.rationale for event in heard(one.events).values() if event.data.turn == "m-2"] == [
        "why"
    ]


@pytest.mark.parametrize("more", [[], [create("m-2", "hm", 3)], [create("m-2", "+0", 3)]])
def test_what_a_target_took_over_changes_with_the_turn_that_it_comes_from(more: list[Record]) -> None:
    second = target_of(PROPOSITIONS[1])
    one = room(create("m-1", "+1", 1), declare(PROPOSITIONS[1], seconds=2, replaces=TARGET.id), *more)
    one.take(edit("m-1", "-1", 4))
    again = room(create("m-1", "-1", 1), declare(PROPOSITIONS[1], seconds=2, replaces=TARGET.id), *more)
    for target in (TARGET, second):
        state = state_before(one.conversation, "ann", target.id)
        assert state == state_before(again.conversation, "ann", target.id)
    one.take(delete("m-1", 5))
    last = Stance.NEUTRAL if more and more[0] == create("m-2", "+0", 3) else Stance.UNKNOWN
    assert state_before(one.conversation, "ann", second.id).stance is last


def test_all_targets_of_a_turn_are_asked_for_at_once() -> None:
    one = room(declare(PROPOSITIONS[1]), create("m-1", "+1", 1), create("m-2", "-1", 2))
    work = refold(one, edit("m-1", "+0", 3))
    assert [(type(wanted), wanted.turn.turn) for wanted in work.wanted if isinstance(wanted, Read)] == [
        (Read, "m-1"), (Read, "m-1"),
    ]  # fmt: skip
    assert {wanted.target.id for wanted in work.wanted if isinstance(wanted, Read)} == {
        TARGET.id, target_of(PROPOSITIONS[1]).id,
    }  # fmt: skip
    assert work.outcome is None


def test_what_is_read_again_is_shown_the_sides_that_its_holders_turns_take_now() -> None:
    one = room(create("m-1", "+1", 1), create("m-2", "-1", 2), create("b-1", "hm", 3, "bo"))
    assert [turn.sides for turn in one.conversation.window] == [
        {TARGET.id: Expressed.SUPPORT}, {TARGET.id: Expressed.OPPOSE}, {},
    ]  # fmt: skip
    work = refold(one, edit("m-1", "+0", 4))
    (wanted,) = work.wanted
    work.take([observe(Expressed.NEUTRAL, turn="m-1", revision=wanted.revision, target=TARGET.id)])
    (wanted,) = work.wanted
    assert isinstance(wanted, Read)
    assert (wanted.turn.turn, wanted.state) == ("m-2", Stance.NEUTRAL)
    assert [turn.sides for turn in wanted.window] == [{TARGET.id: Expressed.NEUTRAL}]
    assert wanted.turn.sides == {}


def test_a_persons_word_is_the_side_that_later_turns_are_read_beside() -> None:
    one = room(create("m-1", "+1", 1)).take(override(Stance.OPPOSE, turn="m-1", seconds=2))
    assert [turn.sides for turn in one.conversation.window] == [{TARGET.id: Expressed.OPPOSE}]
    one.take(override(Stance.UNKNOWN, "again", turn="m-1", seconds=3))
    assert [turn.sides for turn in one.conversation.window] == [{}]


def test_a_turn_of_its_own_that_cannot_be_read_refuses_the_record() -> None:
    work = refold(room(create("m-2", "+1", 2)), create("m-1", "-1", 1))
    with pytest.raises(Refused) as refused:
        work.take([None])
    assert refused.value.reason is Reason.FAILED


def test_another_turn_that_cannot_be_read_again_is_stale() -> None:
    one = room(create("m-1", "+1", 1), create("m-2", "-1", 2))
    work = refold(one, delete("m-1", 3))
    work.take([None])
    assert work.outcome is not None
    (entry,) = (entry for entry in work.outcome.changed if entry.turn == "m-2")
    assert entry.observations[0].marks == (Mark.STALE,)


def test_a_flip_that_nobody_explains_is_told_without_a_trigger() -> None:
    one = room(create("m-1", "+1", 1), create("m-3", "hm", 3))
    work = refold(one, create("m-2", "-1", 2))
    work.take([observe(Expressed.OPPOSE, turn="m-2", target=TARGET.id, read_under=Stance.SUPPORT)])
    assert isinstance(work.wanted[0], Question)
    work.take([None])
    while work.outcome is None:
        work.take([None for _ in work.wanted])
    assert state_before(work.outcome.conversation, "ann", TARGET.id).stance is Stance.OPPOSE
    assert not work.outcome.events[0].data.trigger


@pytest.mark.parametrize("wrong", [{"turn": "m-9"}, {"revision": 5}, {"holder": "bo"}, {"target": "t-9"}])
def test_an_answer_about_something_else_is_not_folded(wrong: dict[str, object]) -> None:
    work = refold(room(create("m-2", "+1", 2)), create("m-1", "-1", 1))
    right: dict[str, object] = {"turn": "m-1", "target": TARGET.id}
    with pytest.raises(WrongObservation):
        work.take([observe(Expressed.OPPOSE, **(right | wrong))])


def test_a_persons_word_is_certain_and_relevant() -> None:
    seen = observe(Expressed.SUPPORT, relevance=0.1)
    for to, label in ((Stance.OPPOSE, "oppose"), (Stance.UNKNOWN, "none")):
        shown = said(seen, Word("mod", "because", to))
        assert (shown.expressed, shown.relevance) == (Probabilities(**{label: 1.0}), 1.0)
