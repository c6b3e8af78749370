"""Targets: declared, refused, retired, re-activated, and replaced with their states."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tracker.strategies import HOLDERS, PROPOSITIONS, ROOM, declare, target_of
from tracker.machine import UNKNOWN, StanceState
from tracker.records import DeclareTarget, Reason, Refused, TargetStatus
from tracker.stances import Stance
from tracker.targets import MAX_ACTIVE, MAX_KNOWN, Targets, active, declared, first, moved, state_of

A, B, C = (target_of(proposition).id for proposition in PROPOSITIONS[:3])
SUPPORT, OPPOSE = StanceState(Stance.SUPPORT, "m-1", 1.0), StanceState(Stance.OPPOSE, "m-2", 1.0, 1)
RETIRED = TargetStatus.RETIRED


def _declared(*records: tuple[int, dict[str, Any]]) -> Targets:
    targets: Targets = ()
    for number, fields in records:
        targets = declared(targets, declare(PROPOSITIONS[number], **fields))
    return targets


def _reason(targets: Targets, number: int, **fields: Any) -> tuple[Reason, str]:
    with pytest.raises(Refused) as refused:
        declared(targets, declare(PROPOSITIONS[number], **fields))
    return refused.value.reason, refused.value.field


def test_a_declared_target_is_active_and_its_id_depends_on_the_conversation() -> None:
    targets = _declared((0, {}))
    assert targets == (target_of(PROPOSITIONS[0]),)
    elsewhere = DeclareTarget(
        conversation="elsewhere", sent_at=declare("x").sent_at, id="d", proposition=PROPOSITIONS[0]
    )
    assert declared((), elsewhere)[0].id != targets[0].id


def test_a_fourth_active_target_is_refused() -> None:
    three = _declared((0, {}), (1, {}), (2, {}))
    assert _reason(three, 3) == (Reason.TOO_MANY_TARGETS, "proposition")


@pytest.mark.parametrize("fields", [{"replaces": A}, {}])
def test_a_fourth_is_taken_where_one_makes_room(fields: dict[str, Any]) -> None:
    three = _declared((0, {}), (1, {}), (2, {}))
    room = three if fields else declared(three, declare(PROPOSITIONS[0], status=RETIRED))
    after = declared(room, declare(PROPOSITIONS[3], **fields))
    assert [target.proposition for target in active(after)] == list(PROPOSITIONS[1:4])


def test_retired_targets_are_counted_too_since_every_header_holds_them() -> None:
    targets: Targets = ()
    for number in range(MAX_KNOWN):
        proposition = f"whether {number}"
        targets = declared(declared(targets, declare(proposition)), declare(proposition, status=RETIRED))
    with pytest.raises(Refused) as refused:
        declared(targets, declare("whether one more"))
    assert refused.value.reason is Reason.TOO_MANY_TARGETS
    assert declared(targets, declare("whether 7"))[7].status is TargetStatus.ACTIVE


def test_a_known_target_may_be_declared_again() -> None:
    three = _declared((0, {}), (1, {}), (2, {}))
    assert declared(three, declare(PROPOSITIONS[1])) == three


def test_retire_and_re_activate_keeps_the_targets_place() -> None:
    both = _declared((0, {}), (1, {}))
    retired = declared(both, declare(PROPOSITIONS[0], status=RETIRED))
    assert [target.id for target in active(retired)] == [B]
    assert declared(retired, declare(PROPOSITIONS[0])) == both


def test_a_fourth_may_not_be_re_activated() -> None:
    four = _declared((0, {}), (0, {"status": RETIRED}), (1, {}), (2, {}), (3, {}))
    assert _reason(four, 0) == (Reason.TOO_MANY_TARGETS, "proposition")


@pytest.mark.parametrize(
    ("number", "fields", "field"),
    [
        (1, {"status": RETIRED}, "proposition"),
        (1, {"replaces": "t-0"}, "replaces"),
        (1, {"replaces": B}, "replaces"),  # itself
    ],
)
def test_what_was_never_declared_is_neither_retired_nor_replaced(
    number: int, fields: dict[str, Any], field: str
) -> None:
    assert _reason(_declared((0, {})), number, **fields) == (Reason.UNKNOWN_TARGET, field)


def test_a_known_target_cannot_take_over_anothers_states() -> None:
    renamed = _declared((0, {}), (1, {"replaces": A}))
    assert _reason(renamed, 0, replaces=B) == (Reason.INVALID_VALUE, "replaces")
    assert _reason(renamed, 1, replaces=B) == (Reason.INVALID_VALUE, "replaces")
    assert declared(renamed, declare(PROPOSITIONS[1], replaces=A)) == renamed


def test_a_replaced_target_is_retired_and_its_states_are_carried_over() -> None:
    targets = _declared((0, {}), (1, {"replaces": A}), (2, {"replaces": B}))
    assert [target.id for target in active(targets)] == [C]
    assert state_of({A: SUPPORT}, targets, C) == SUPPORT
    assert state_of({A: SUPPORT, B: OPPOSE}, targets, C) == OPPOSE
    assert state_of({}, targets, C) == state_of({B: SUPPORT}, targets, A) == UNKNOWN


@pytest.mark.parametrize("before", [UNKNOWN, SUPPORT])
def test_an_old_target_that_is_active_again_moves_only_its_own_states(before: StanceState) -> None:
    targets = _declared((0, {}), (1, {"replaces": A}), (0, {}))
    states = moved({} if before is UNKNOWN else {A: before}, targets, A, OPPOSE)
    assert state_of(states, targets, A) == OPPOSE
    assert state_of(states, targets, B) == before


def test_a_state_of_its_own_is_never_overwritten_by_the_old_targets() -> None:
    targets = _declared((0, {}), (1, {"replaces": A}), (0, {}))
    assert moved({A: SUPPORT, B: OPPOSE}, targets, A, OPPOSE)[B] is OPPOSE
    assert moved({A: OPPOSE, B: SUPPORT}, targets, A, OPPOSE)[B] is SUPPORT


def test_moved_leaves_its_argument_alone() -> None:
    states = {A: SUPPORT}
    moved(states, _declared((0, {}), (1, {"replaces": A})), A, OPPOSE)
    assert states == {A: SUPPORT}


def test_a_rooms_targets_are_at_most_three_and_each_once() -> None:
    found = first("default", ROOM, (PROPOSITIONS[0], PROPOSITIONS[0], *PROPOSITIONS))
    assert [target.proposition for target in found] == list(PROPOSITIONS[:MAX_ACTIVE])
    assert first("default", ROOM, ()) == ()


@dataclasses.dataclass
class Eager:
    """What `replaces` means, told by copying every holder's state at the moment of replacement."""

    states: dict[tuple[str, str], StanceState] = dataclasses.field(default_factory=dict)

    def declare(self, targets: Targets, record: DeclareTarget, ident: str) -> None:
        if record.replaces and record.status is TargetStatus.ACTIVE and ident not in {t.id for t in targets}:
            for holder in HOLDERS:
                self.states[holder, ident] = self.of(holder, record.replaces)

    def of(self, holder: str, ident: str) -> StanceState:
        return self.states.get((holder, ident), UNKNOWN)


declarations = st.builds(
    declare,
    st.sampled_from(PROPOSITIONS[:4]),
    status=st.sampled_from([TargetStatus.ACTIVE, TargetStatus.ACTIVE, RETIRED]),
    replaces=st.none() | st.sampled_from(PROPOSITIONS[:4]).map(lambda text: target_of(text).id),
)
moves = st.tuples(
    st.sampled_from(HOLDERS), st.integers(0, 2), st.sampled_from([Stance.SUPPORT, Stance.OPPOSE])
)


@given(st.lists(declarations | moves, max_size=40))
def test_lazy_carrying_over_equals_copying_at_the_moment_of_replacement(
    operations: list[DeclareTarget | tuple[str, int, Stance]],
) -> None:
    targets: Targets = ()
    eager, lazy = Eager(), {holder: dict[str, StanceState]() for holder in HOLDERS}
    for number, operation in enumerate(operations):
        if isinstance(operation, DeclareTarget):
            try:
                after = declared(targets, operation)
            except Refused:
                continue
            eager.declare(targets, operation, target_of(operation.proposition).id)
            targets = after
        elif reached := active(targets)[operation[1] :]:
            holder, ident, state = operation[0], reached[0].id, StanceState(operation[2], f"m-{number}", 1.0)
            lazy[holder] = moved(lazy[holder], targets, ident, state)
            eager.states[holder, ident] = state
        for holder in HOLDERS:
            for target in targets:
                assert state_of(lazy[holder], targets, target.id) == eager.of(holder, target.id)
        assert len(active(targets)) <= MAX_ACTIVE
        assert len({target.id for target in targets}) == len(targets)


def test_a_found_target_is_known_as_such_until_an_operator_declares_it() -> None:
    found = declared((), declare("p"), found=True)
    assert [each.found for each in found] == [True]
    retired = declared(found, declare("p", status=TargetStatus.RETIRED), found=True)
    assert [(each.found, each.status) for each in retired] == [(True, "retired")]
    assert declared(retired, declare("p"), found=True)[0].found
    assert not declared(found, declare("p"))[0].found


def test_what_an_operator_declared_is_neither_replaced_nor_retired_by_the_cartographer() -> None:
    known = declared((), declare("p"))
    assert declared(known, declare("p", status=TargetStatus.RETIRED), found=True) == known
    beside = declared(known, declare("q", replaces=known[0].id), found=True)
    assert [(each.status, each.found) for each in beside] == [("active", False), ("active", True)]
