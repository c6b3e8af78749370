"""What leaves when a record is settled: the same live, in a replay, and however the list is cut."""

import datetime as dt
import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tracker.driver import Fake, Marked, Moody, advance, empty, last, play
from tests.tracker.strategies import (
    HOLDERS,
    PROPOSITIONS,
    at,
    create,
    debate,
    declare,
    dialogues,
    policies,
    target_of,
)
from tracker.context import Window
from tracker.conversation import Conversation, Header, Rules, admitted, state_before
from tracker.events import Event, EventType
from tracker.machine import StanceState, step
from tracker.observations import Critic, Mark, Observation
from tracker.policy import Policy
from tracker.proposals import Inquiry
from tracker.records import CreateTurn, Record, record_id
from tracker.settlement import Outcome, settled
from tracker.stances import Stance
from tracker.targets import Target

ALL = Rules(persisted=True)
TARGET = target_of(PROPOSITIONS[0])


def _events(outcomes: list[Outcome]) -> list[Event]:
    return [event for outcome in outcomes for event in outcome.events]


def _counted(events: list[Event]) -> list[Event]:
    return [event for event in events if event.type is not EventType.PERSISTED]


def _told(*texts: str, rules: Rules = ALL, reader: Fake | None = None) -> list[Event]:
    turns = [create(f"m-{number}", text, number) for number, text in enumerate(texts)]
    return _events(play(debate(*turns), rules, reader or Marked()))


def test_the_papers_course_established_persisted_flipped() -> None:
    events = _told("what?", "+1", "hm", "-1")
    assert [event.type.rpartition(".")[2] for event in events] == [
        "persisted", "established", "persisted", "flipped",
    ]  # fmt: skip
    assert [(event.data.before, event.data.after) for event in events] == [
        ("unknown", "unknown"), ("unknown", "support"), ("support", "support"), ("support", "oppose"),
    ]  # fmt: skip
    assert [int(event.sequence) for event in events] == [0, 1, 1, 2]


@given(dialogues(), policies)
def test_the_sequence_is_gapless_and_persisted_events_repeat_the_last(
    records: list[Record], policy: Policy
) -> None:
    number = 0
    for event in _events(play(records, Rules(policy=policy, persisted=True))):
        number += event.type is not EventType.PERSISTED
        assert event.sequence == f"{number:020}"


@given(dialogues())
def test_previous_chains_the_flips_and_nothing_else_has_it(records: list[Record]) -> None:
    outcomes = play(records, ALL)
    flips = [event for event in _events(outcomes) if event.type is EventType.FLIPPED]
    chain = [f"{0:020}", *(event.sequence for event in flips)]
    assert [event.previous for event in flips] == chain[:-1]
    assert all(event in flips or event.previous is msgspec.UNSET for event in _events(outcomes))
    assert int(chain[-1]) == last(outcomes).header.flip_sequence


@given(dialogues())
def test_event_ids_are_deterministic_and_unique(records: list[Record]) -> None:
    ids = [event.id for event in _events(play(records, ALL))]
    assert len(set(ids)) == len(ids)
    assert ids == [event.id for event in _events(play(records, ALL))]


def test_another_run_has_other_ids_and_sources() -> None:
    records = debate(create("m-1", "+1"))
    live, replay = (_events(play(records, start=empty(run)))[0] for run in ("live", "again"))
    assert live.id != replay.id
    assert (live.source, replay.source) == ("volteface/default/live/room-7", "volteface/default/again/room-7")


@given(dialogues())
def test_persisted_events_are_all_that_the_rule_changes(records: list[Record]) -> None:
    asked, unasked = play(records, ALL), play(records, Rules())
    assert _counted(_events(asked)) == _events(unasked)
    for one, other in zip(asked, unasked, strict=True):
        assert msgspec.structs.replace(one, events=()) == msgspec.structs.replace(other, events=())


@given(dialogues())
def test_with_persisted_one_event_for_every_turn_and_active_target(records: list[Record]) -> None:
    for outcome in play(records, ALL):
        active = [target for target in outcome.conversation.header.targets if target.status == "active"]
        turn = outcome.journal.entry.op == "create"
        assert [event.data.target.id for event in outcome.events] == [target.id for target in active if turn]


@given(dialogues())
def test_versions_count_records_and_are_their_arrivals(records: list[Record]) -> None:
    outcomes = play(records)
    for number, outcome in enumerate(outcomes, 1):
        assert outcome.conversation.header.version == outcome.journal.entry.arrival == number
        assert all(state.version == number for state in outcome.states)


@given(dialogues())
def test_events_tell_how_the_states_moved(records: list[Record]) -> None:
    outcomes = play(records)
    known: dict[tuple[str, str], StanceState] = {}
    for outcome in outcomes:
        for moved in outcome.states:
            known[moved.holder, moved.target] = moved.state
        for event in outcome.events:
            now = state_before(outcome.conversation, event.data.holder, event.data.target.id)
            assert known[event.data.holder, event.data.target.id] == now
            assert (now.stance, now.confidence, now.turn) == (
                event.data.after, event.data.confidence, event.data.turn,
            )  # fmt: skip
    assert known == {
        (holder, target): state
        for holder, states in last(outcomes).holders.items()
        for target, state in states.items()
    }


class Polyglot(Moody):
    """Speaks another language with every holder; the third's own reader is missing now and then."""

    def observe(self, turn: CreateTurn, target: Target, state: Stance) -> Observation:
        seen, place = super().observe(turn, target, state), HOLDERS.index(turn.holder)
        marks = (Mark.FALLBACK,) if place == 2 and len(turn.text) > 2 else ()
        model = msgspec.structs.replace(seen.model, language=("en", "zh-Hant", "es")[place])
        return msgspec.structs.replace(seen, model=model, marks=marks)


def _judging(observation: Observation, default: Policy, chinese: Policy, spanish: Policy) -> Policy:
    if observation.model.language == "zh-Hant":
        return chinese
    return (
        spanish if observation.model.language == "es" and Mark.FALLBACK not in observation.marks else default
    )


@given(dialogues(), policies, policies, policies)
def test_each_event_has_the_stamp_of_the_policy_that_judged_it(
    records: list[Record], default: Policy, chinese: Policy, spanish: Policy
) -> None:
    rules = Rules(policy=default, policies={"zh": chinese, "es": spanish}, persisted=True)
    for outcome in play(records, rules, Polyglot()):
        seen = {one.target: one for one in outcome.journal.entry.observations}
        for event in outcome.events:
            one = seen.get(event.data.target.id)
            judging = _judging(one, default, chinese, spanish) if one else default
            assert event.data.policy == judging.stamp


@given(dialogues(), policies, policies, policies)
def test_what_the_ledger_holds_folds_to_the_same_states(
    records: list[Record], default: Policy, chinese: Policy, spanish: Policy
) -> None:
    rules = Rules(policy=default, policies={"zh": chinese, "es": spanish})
    before = empty()
    for outcome in play(records, rules, Polyglot()):
        for one in outcome.journal.entry.observations:
            state, _ = step(state_before(before, one.holder, one.target), one, rules.judging(one))
            assert state == state_before(outcome.conversation, one.holder, one.target)
        before = outcome.conversation


@given(dialogues())
def test_every_state_is_written_once_a_record(records: list[Record]) -> None:
    for outcome in play(records):
        written = [(state.holder, state.target) for state in outcome.states]
        assert len(set(written)) == len(written)
        assert outcome.journal.states == outcome.states


@given(dialogues())
def test_a_turn_of_nobody_else_moves_nobody_else(records: list[Record]) -> None:
    before = empty()
    for outcome in play(records):
        speaker = outcome.journal.entry.holder
        assert {state.holder for state in outcome.states} <= {speaker}
        for holder in before.holders.keys() - {speaker}:
            assert outcome.conversation.holders[holder] == before.holders[holder]
        before = outcome.conversation


@given(dialogues(), st.lists(st.floats(0, 59), min_size=40, max_size=40))
def test_a_replay_equals_live_where_nothing_was_clamped(records: list[Record], delays: list[float]) -> None:
    delay = {
        record_id(record): dt.timedelta(seconds=late) for record, late in zip(records, delays, strict=False)
    }
    live = play(records, ALL, receipt=lambda record: record.sent_at + delay[record_id(record)])
    assert live == play(records, ALL)


class Shelf:
    """A store: bytes only, and only the holders asked for come out of it."""

    def __init__(self, codec: Any) -> None:
        self.codec, self.header, self.window = codec, codec.encode(Header()), codec.encode(())
        self.states: dict[str, bytes] = {}

    def load(self, records: list[Record]) -> Conversation:
        asked = {record.holder for record in records if isinstance(record, CreateTurn)} & self.states.keys()
        decode = self.codec.decode
        return msgspec.structs.replace(
            empty(),
            header=decode(self.header, type=Header),
            window=decode(self.window, type=Window),
            holders={name: decode(self.states[name], type=dict[str, StanceState]) for name in asked},
        )

    def save(self, conversation: Conversation) -> None:
        self.header, self.window = map(self.codec.encode, (conversation.header, conversation.window))
        self.states |= {name: self.codec.encode(states) for name, states in conversation.holders.items()}


@pytest.mark.parametrize("codec", [msgspec.json, msgspec.msgpack])
@given(records=dialogues(), cuts=st.sets(st.integers(0, 33)))
def test_the_same_comes_out_however_the_records_are_cut(
    codec: Any, records: list[Record], cuts: set[int]
) -> None:
    shelf, outcomes = Shelf(codec), []
    for start, end in itertools.pairwise(sorted({0, len(records), *cuts})):
        part = records[start:end]
        if done := play(part, ALL, start=shelf.load(part)):
            shelf.save(last(done))
        outcomes += done
    whole = play(records, ALL)
    assert [(one.events, one.states, one.journal) for one in outcomes] == [
        (one.events, one.states, one.journal) for one in whole
    ]
    assert shelf.load(records) == last(whole)


@pytest.mark.parametrize(
    ("records", "mark"),
    [
        ([create("m-1", "+1", 10), create("m-2", "-1", 5)], Mark.LATE),
        ([create("m-1", "+1", 10), create("m-2", "-1", 10, reply_to="gone")], Mark.REPLY_MISSING),
    ],
)
def test_marks_stand_on_the_event_and_in_the_journal(records: list[Record], mark: Mark) -> None:
    outcome = play(debate(*records), ALL, Marked())[-1]
    assert outcome.journal.entry.marks == (mark,)
    assert [event.data.marks for event in outcome.events] == [(mark,)]


def test_a_mark_of_record_and_observation_is_said_once() -> None:
    class Missing(Marked):
        def observe(self, *asked: Any) -> Any:
            return msgspec.structs.replace(
                super().observe(*asked), marks=(Mark.REPLY_MISSING, Mark.UNTRAINED)
            )

    records = debate(create("m-1", reply_to="gone"))
    (event,) = play(records, ALL, Missing())[-1].events
    assert event.data.marks == (Mark.REPLY_MISSING, Mark.UNTRAINED)


def test_a_late_turn_persists_the_state_as_it_is_now_and_says_nothing_unasked() -> None:
    records = debate(create("m-1", "+1", 10), create("m-2", "-1", 5))
    (event,) = play(records, ALL, Marked())[-1].events
    assert (event.type, event.data.before, event.data.after) == (EventType.PERSISTED, "support", "support")
    assert (event.time, event.data.confidence) == (at(5), msgspec.UNSET)
    assert play(records, Rules(), Marked())[-1].events == ()


def test_a_clamped_turns_event_has_the_receipts_time() -> None:
    start = last(play([declare(PROPOSITIONS[0])]))
    outcome = advance(start, create("m-1", "+1", 3600), ALL, Marked(), at(0))
    (event,) = outcome.events
    assert (event.time, event.data.marks, outcome.journal.entry.sent_at) == (at(0), (Mark.CLAMPED,), at(0))


def test_several_targets_flip_in_one_turn_each_with_a_number_of_its_own() -> None:
    records = debate(*map(declare, PROPOSITIONS[1:3]), create("m-1", "+1"), create("m-2", "-1", 1))
    events = play(records, ALL, Marked())[-1].events
    assert [(int(event.sequence), int(str(event.previous))) for event in events] == [(4, 0), (5, 4), (6, 5)]


def test_a_flip_after_replacement_counts_on_from_the_inherited_state() -> None:
    renamed = declare(PROPOSITIONS[1], replaces=TARGET.id)
    turns = [create("m-1", "+1"), create("m-2", "-1", 1)]
    outcomes = play(debate(*turns, renamed, create("m-3", "+1", 2)), ALL, Marked())
    (event,), (moved,) = outcomes[-1].events, outcomes[-1].states
    assert (event.type, event.data.target.proposition) == (EventType.FLIPPED, PROPOSITIONS[1])
    assert moved.state == StanceState(Stance.SUPPORT, "m-3", 1.0, 2)
    assert last(outcomes).holders["ann"][TARGET.id].stance is Stance.OPPOSE


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["old first", "new first"])
def test_old_and_new_target_may_move_in_one_turn(order: tuple[int, int]) -> None:
    new = target_of(PROPOSITIONS[1], replaces=TARGET.id)
    targets = tuple((TARGET, new)[place] for place in order)
    held = StanceState(Stance.SUPPORT, "m-0", 1.0)
    start = msgspec.structs.replace(
        empty(), header=Header(version=1, targets=targets), holders={"ann": {TARGET.id: held}}
    )
    outcome = advance(start, create("m-1", "-1"), ALL, Marked())
    flipped = StanceState(Stance.OPPOSE, "m-1", 1.0, 1)
    assert outcome.conversation.holders["ann"] == {TARGET.id: flipped, new.id: flipped}
    assert sorted(state.target for state in outcome.states) == sorted([TARGET.id, new.id])


def test_no_flip_leaves_where_nothing_flips_on_a_second_reading() -> None:
    class Doubtful(Marked):
        def explain(self, fold: Any) -> Any:
            return msgspec.structs.replace(
                super().explain(fold),
                critic=Critic.REFINED,
                refined=super().observe(create("m-1", "hm", 1), TARGET, Stance.SUPPORT),
            )

    records = debate(create("m-0", "+1"), create("m-1", "-1", 1))
    outcome = play(records, ALL, Doubtful())[-1]
    assert [event.type for event in outcome.events] == [EventType.PERSISTED]
    assert (outcome.states, outcome.journal.entry.explanations) == ((), ())
    assert outcome.journal.entry.observations[0].expressed.none == 1.0
    assert outcome.conversation.header.flip_sequence == 0


def test_moody_dialogues_reach_flips_and_refinements() -> None:
    """The fake reader of the property tests is worth them."""
    turns = [create(f"m-{number}", f"text {number}", number) for number in range(60)]
    events = _events(play(debate(*turns), ALL, Moody()))
    critics = {event.data.critic for event in events if event.type is EventType.FLIPPED}
    assert critics == {Critic.PASSED, Critic.REFINED}


FINDS = Rules(finds=True)


def _talk(turns: int, start: int = 1) -> list[Record]:
    return [create(f"m-{number}", seconds=number) for number in range(start, start + turns)]


def test_the_cartographer_is_asked_at_a_turn_only_where_the_rules_say_so() -> None:
    before = last(play(_talk(3)))
    turn = create("m-4", seconds=4)
    assert admitted(before, turn, None, Rules()).inquiry is None
    assert admitted(before, turn, None, FINDS).inquiry == Inquiry()
    assert admitted(before, create("m-1", "hm", seconds=0), None, FINDS).turn is not None
    assert admitted(last(play(_talk(4))), create("m-5", seconds=5), None, FINDS).inquiry is None


def test_a_found_target_is_awaited_until_it_comes_back_and_is_then_known_as_found() -> None:
    before, turn = last(play(_talk(3))), create("m-4", seconds=4)
    found = (declare("whether tea", "found-1"),)
    outcome = settled(before, admitted(before, turn, None, FINDS), (), FINDS, found=found)
    assert (outcome.found, outcome.conversation.header.awaited) == (found, ("found-1",))
    assert outcome.journal.header.awaited == ("found-1",)
    later = last(play(_talk(4, 5), FINDS, start=outcome.conversation))
    assert admitted(later, create("m-9", seconds=9), None, FINDS).inquiry is None
    after = last(play([declare("whether tea", "found-1", 4)], FINDS, start=later)).header
    assert (after.awaited, [each.found for each in after.targets]) == ((), [True])
    other = last(play([declare("whether tea", "another", 4)], FINDS, start=later)).header
    assert (other.awaited, [each.found for each in other.targets]) == (("found-1",), [False])
