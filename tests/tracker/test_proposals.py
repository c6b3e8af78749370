import datetime as dt

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker import keys, parsing, proposals, records
from tracker.context import Window, WindowTurn
from tracker.proposals import DRIFT_RECORDS, FIRST_TURNS, Inquiry, Proposal, inquiry
from tracker.records import CreateTurn, TargetStatus
from tracker.targets import MAX_KNOWN, Target, Targets

AT = dt.datetime(2026, 11, 29, 20, 0, tzinfo=dt.UTC)
TURN = CreateTurn(conversation="room", turn="m-4", holder="ann", text="no", sent_at=AT)


def target(proposition: str, **rest: object) -> Target:
    known = Target(keys.target_id("default", "room", proposition), proposition)
    return msgspec.structs.replace(known, **rest)


FOUND = target("whether tea", found=True)
DECLARED = target("whether coffee")
RETIRED = {"status": TargetStatus.RETIRED}


def window(turns: int) -> Window:
    return tuple(WindowTurn(str(at), "ann", "text") for at in range(turns))


def made(
    proposition: str | None, targets: Targets = (), asked: Target | None = None, *, replaces: bool = False
) -> tuple[tuple[str, str, str | None], ...]:
    """Proposition, status and what is replaced, of each record."""
    proposal = Proposal("room", "m-4", proposition, replaces)
    found = proposals.records(targets, Inquiry(asked), TURN, AT, proposal)
    return tuple((record.proposition, record.status.value, record.replaces) for record in found)


def test_a_conversation_without_target_is_asked_about_at_its_first_turns_alone() -> None:
    asked = [turn for turn in range(1, 40) if inquiry((), False, turn - 1, window(min(turn - 1, 12)))]
    assert asked == list(FIRST_TURNS)


@pytest.mark.parametrize(
    ("targets", "on_the_way"),
    [((DECLARED,), False), ((), True), ((msgspec.structs.replace(FOUND, **RETIRED),), False)],
    ids=["declared", "on the way", "found and retired by a person"],
)
def test_nothing_is_asked_where_there_is_a_target_or_was_one_found(
    targets: Targets, on_the_way: bool
) -> None:
    assert inquiry(targets, on_the_way, 3, window(3)) is None


def test_a_retired_target_of_an_operator_leaves_a_conversation_without_one() -> None:
    assert inquiry((msgspec.structs.replace(DECLARED, **RETIRED),), False, 4, window(3)) == Inquiry()


def test_a_found_target_is_asked_about_now_and_again() -> None:
    targets = (DECLARED, FOUND)
    asked = [version for version in range(60) if inquiry(targets, False, version, window(12))]
    assert asked == [at * DRIFT_RECORDS - 1 for at in range(1, 6)]
    assert inquiry(targets, False, asked[0], window(12)) == Inquiry(FOUND)
    assert inquiry(targets, True, asked[0], window(12)) is None
    assert inquiry((DECLARED,), False, asked[0], window(12)) is None


def test_a_first_target_is_declared() -> None:
    assert made("whether tea") == (("whether tea", "active", None),)
    assert made(None) == ()


def test_another_debate_retires_the_one_that_was_left() -> None:
    left = ("whether tea", "retired", None)
    assert made("whether milk", (FOUND,), FOUND) == (left, ("whether milk", "active", None))


def test_the_same_debate_in_other_words_carries_its_states_over() -> None:
    assert made("if tea", (FOUND,), FOUND, replaces=True) == (("if tea", "active", FOUND.id),)


def test_a_debate_that_comes_back_is_declared_again_with_its_own_states() -> None:
    before = target("whether milk", found=True, **RETIRED)
    back = (("whether tea", "retired", None), ("whether milk", "active", None))
    assert made("whether milk", (FOUND, before), FOUND, replaces=True) == back


@pytest.mark.parametrize(
    "targets",
    [
        (FOUND, DECLARED),
        (FOUND, msgspec.structs.replace(DECLARED, **RETIRED)),
        (FOUND, *(target(f"whether {at}") for at in range(MAX_KNOWN))),
    ],
    ids=["active already", "retired by a person", "no room"],
)
def test_what_may_not_be_declared_changes_nothing(targets: Targets) -> None:
    assert made("whether coffee" if len(targets) == 2 else "whether milk", targets, FOUND) == ()


def test_the_same_words_again_change_nothing() -> None:
    assert made("whether tea", (FOUND,), FOUND, replaces=True) == ()


@given(
    st.text(min_size=1, max_size=80).filter(str.strip),
    st.one_of(st.none(), st.text(min_size=1, max_size=80)),
    st.booleans(),
)
def test_a_turn_gives_the_same_records_again_and_the_log_takes_them(
    proposition: str, ident: str | None, replaces: bool
) -> None:
    turn = msgspec.structs.replace(TURN, id=ident)
    proposal = Proposal("room", "m-4", proposition, replaces)
    once, again = (proposals.records((FOUND,), Inquiry(FOUND), turn, AT, proposal) for _ in range(2))
    assert once == again
    assert len({record.id for record in once}) == len(once)
    for record in once:
        assert parsing.parse(records.encode(record)) == record
        assert record.id not in (FOUND.id, records.record_id(turn))
