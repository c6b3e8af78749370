"""A backtest tells no difference under the policy in force, and what live would have told under another."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tracker.correcting import Room, heard
from tests.tracker.corrections import ALL, delete, logs, override, pin
from tests.tracker.driver import Fake, Marked
from tests.tracker.strategies import (
    PROPOSITIONS,
    at,
    create,
    debate,
    declare,
    dialogues,
    observe,
    policies,
    target_of,
)
from tracker.backtest import SOON, Case, Change, Compared, Plan, Scene, compared
from tracker.conversation import Rules
from tracker.events import Event, EventType
from tracker.ledger import LedgerEntry
from tracker.observations import Mark, Model, Observation, Probabilities
from tracker.policy import Policy, Threshold
from tracker.records import CreateTurn, HolderKind, Record
from tracker.stances import Stance
from tracker.targets import Target

NEVER = Rules(Policy(flip=Threshold(1.01)))
TARGET = target_of(PROPOSITIONS[0]).id
Told = tuple[object, ...]


def scene(room: Room) -> Scene:
    declared = {
        one.target: one.arrival for one in room.ledger.values() if one.op == "target" and not one.again
    }
    return Scene(room.conversation.header.targets, {str(name): at for name, at in declared.items()})


def turns(ledger: Iterable[LedgerEntry], holder: str) -> list[LedgerEntry]:
    left = [one for one in ledger if one.op == "create" and one.holder == holder and not one.gone]
    return sorted(left, key=lambda one: one.place)


def backtest(room: Room, plan: Plan | None = None, after: int = 0) -> dict[str, Compared]:
    """Each holder's turns; `after`: what the journal does not hold any more."""
    left = [one for one in room.ledger.values() if one.arrival > after]
    known = scene(room)
    known = Scene(known.targets, {name: at for name, at in known.declared.items() if at > after})
    holders = sorted({one.holder for one in left if one.holder is not None})
    given = plan or Plan(room.rules, room.rules)
    return {holder: compared(turns(left, holder), known, given) for holder in holders}


def cases(found: dict[str, Compared]) -> list[Case]:
    return [case for one in found.values() for case in one.cases]


def of_candidate(found: Iterable[Case]) -> set[Told]:
    return {
        (case.flip.entry.turn, case.flip.entry.holder, case.flip.observation.target,
         case.candidate.before, case.candidate.after, case.candidate.confidence)
        for case in found if case.candidate is not None
    }  # fmt: skip


def of_base(found: Iterable[Case]) -> set[Told]:
    return {
        (case.flip.entry.turn, case.flip.entry.holder, case.flip.observation.target,
         case.base.before, case.base.after, case.base.confidence)
        for case in found if case.base is not None
    }  # fmt: skip


def of_events(events: Iterable[Event]) -> set[Told]:
    """The flips that a subscriber ends with."""
    return {
        (one.data.turn, one.data.holder, one.data.target.id, one.data.before, one.data.after,
         one.data.confidence)
        for one in heard(events).values() if one.type is EventType.FLIPPED
    }  # fmt: skip


class Unsure(Marked):
    """Reads the markers with the probability that a text ends with; knows nothing of the state."""

    def observe(self, turn: CreateTurn, target: Target, state: Stance) -> Observation:
        marker, _, share = turn.text.partition(" ")
        sure = float(share or 1.0)
        expressed = {"+1": "support", "-1": "oppose", "+0": "neutral"}[marker]
        given = {expressed: sure, "none": 1.0 - sure}
        return observe(
            Probabilities(**given), turn=turn.turn, holder=turn.holder, target=target.id, read_under=state
        )


def room(*records: Record, policy: Policy | None = None, reader: Fake | None = None) -> Room:
    return Room(Rules(policy or Policy()), reader or Unsure()).take(*debate(*records))


def flipping(**rest: Any) -> Rules:
    return Rules(Policy(**({"flip": Threshold(0.8)} | rest)))


@given(logs(*ALL), policies)
def test_the_policy_in_force_tells_no_difference(records: list[Record], policy: Policy) -> None:
    made = Room(Rules(policy)).take(*records)
    found = backtest(made)
    assert {one.change for one in cases(found)} <= {Change.STANDS}
    assert {(one.stale, one.unread, one.unlike) for one in found.values()} <= {(0, 0, 0)}
    assert of_base(cases(found)) == of_candidate(cases(found)) == of_events(made.events)


@given(logs(*ALL, replacing=True), policies)
def test_the_same_policy_twice_is_no_difference(records: list[Record], policy: Policy) -> None:
    made = Room().take(*records)
    found = cases(backtest(made, Plan(made.rules, Rules(policy), Rules(policy))))
    assert {one.change for one in found} <= {Change.STANDS}


@given(logs(*ALL, replacing=True))
def test_where_nothing_is_ever_sure_all_flips_vanish(records: list[Record]) -> None:
    made = Room().take(*records)
    found = cases(backtest(made, Plan(made.rules, NEVER)))
    assert {one.change for one in found} <= {Change.VANISHES}
    assert of_base(found) == of_events(made.events)


class Stateless(Marked):
    """Reads as Unsure, by the text alone: live would be told the same under any state."""

    def observe(self, turn: CreateTurn, target: Target, state: Stance) -> Observation:
        shares = {"+1": (0.6, 0.3), "-1": (0.2, 0.7), "+0": (0.1, 0.2), "never": (0.05, 0.9)}
        support, oppose = shares.get(turn.text, (0.25, 0.25))
        spread = Probabilities(support, oppose, 0.0, round(1.0 - support - oppose, 6))
        about = {"turn": turn.turn, "revision": turn.revision, "holder": turn.holder, "target": target.id}
        return observe(spread, read_under=state, relevance=support + oppose, **about)


@given(st.one_of(logs(*ALL, replacing=True), dialogues()), policies, policies)
def test_a_candidate_tells_what_live_would_have_told_under_it(
    records: list[Record], policy: Policy, candidate: Policy
) -> None:
    """As far as the reader does not heed the state; a policy that exempts fewer has nothing to go by."""
    candidate = msgspec.structs.replace(
        candidate, exempt_holders=policy.exempt_holders, exempt_kinds=policy.exempt_kinds
    )
    stood, would = (Room(Rules(one), Stateless()).take(*records) for one in (policy, candidate))
    found = cases(backtest(stood, Plan(stood.rules, would.rules)))
    assert of_base(found) == of_events(stood.events)
    assert of_candidate(found) == of_events(would.events)


def test_each_kind_of_difference() -> None:
    made = room(
        create("m-1", "+1 0.9", 1), create("m-2", "-1 0.6", 2), create("m-3", "+0 0.9", 3),
        create("m-4", "+1 0.55", 4), create("m-5", "-1 0.9", 5),
        policy=Policy(flip=Threshold(0.6)),
    )  # fmt: skip
    [found] = backtest(made, Plan(made.rules, flipping())).values()
    told = [(one.flip.entry.turn, one.change, one.stale) for one in found.cases]
    assert told == [
        ("m-2", Change.VANISHES, False),
        ("m-3", Change.CHANGES, True),
        ("m-5", Change.STANDS, False),
    ]
    changed = found.cases[1]
    assert changed.base is not None
    assert changed.candidate is not None
    assert (changed.base.before, changed.candidate.before) == (Stance.OPPOSE, Stance.SUPPORT)
    assert (found.observations, found.stale, found.unlike) == (5, 1, 0)
    [back] = backtest(made, Plan(made.rules, Rules(Policy(flip=Threshold(0.5))))).values()
    assert [(one.flip.entry.turn, one.change) for one in back.cases if one.change is not Change.STANDS] == [
        ("m-4", Change.APPEARS),
        ("m-5", Change.CHANGES),
    ]


def test_a_flip_that_is_taken_back_soon_looks_false() -> None:
    slow = [create(f"s-{n}", "+1 0.5", 10 + n) for n in range(SOON - 1)]
    made = room(create("m-1"), create("m-2", "-1", 2), *slow, create("m-3", "+1", 20))
    assert [one.looks_false for one in cases(backtest(made))] == [True, False]
    slower = [*slow, create("s-9", "+1 0.5", 19)]
    made = room(
        create("m-1"), create("m-2", "-1", 2), *slower, create("m-3", "+1", 20),
        policy=Policy(flip=Threshold(0.9)),
    )  # fmt: skip
    assert [one.looks_false for one in cases(backtest(made))] == [False, False]
    made = room(create("m-1"), create("m-2", "-1", 2), create("m-3", "+0", 3))
    assert not any(one.looks_false for one in cases(backtest(made)))


def test_what_was_taken_back_or_said_by_a_person_counts_as_it_does_live() -> None:
    made = room(
        create("m-1"), create("m-2", "-1 0.6", 2), create("m-3", "-1 0.6", 3), create("m-4", "+0 0.6", 4),
        delete("m-2", 5), override(Stance.SUPPORT, seconds=6, turn="m-4"),
        policy=Policy(flip=Threshold(0.6)),
    )  # fmt: skip
    found = cases(backtest(made, Plan(made.rules, flipping())))
    assert [(one.flip.entry.turn, one.change) for one in found] == [
        ("m-3", Change.VANISHES),
        ("m-4", Change.VANISHES),
    ]


def test_beneath_a_pin_nothing_is_told() -> None:
    made = room(
        create("m-1"), pin(Stance.NEUTRAL, seconds=2), create("m-2", "-1", 3), pin(None, "off", 4),
        create("m-3", "+1", 5),
    )  # fmt: skip
    [only] = cases(backtest(made))
    assert (only.flip.entry.turn, only.change) == ("m-3", Change.STANDS)


def test_where_the_journal_begins_later_it_begins_from_what_the_first_turn_was_folded_from() -> None:
    renamed = declare(PROPOSITIONS[1], seconds=2.5, replaces=TARGET)
    first = [create("m-1"), create("m-2", "-1", 2)]
    made = room(*first, create("m-3", "+1", 3), create("m-4", "-1", 4))
    found = cases(backtest(made, after=3))
    assert [(one.flip.entry.turn, one.change) for one in found] == [
        ("m-3", Change.STANDS),
        ("m-4", Change.STANDS),
    ]
    made = room(*first, renamed, create("m-3", "+1", 3))
    assert [one.change for one in cases(backtest(made, after=3))] == [Change.STANDS]
    # A target that took over states within the journal has them from there alone.
    made = room(create("m-1"), renamed, create("m-3", "-1", 3))
    assert cases(backtest(made, Plan(made.rules, Rules(Policy(establish=Threshold(1.01))))))[0].change is (
        Change.VANISHES
    )


@given(logs(*ALL), st.integers(0, 12))
def test_a_journal_that_begins_later_tells_no_difference_either(records: list[Record], after: int) -> None:
    made = Room().take(*records)
    found = backtest(made, after=after)
    assert {one.change for one in cases(found)} <= {Change.STANDS}
    assert {one.unlike for one in found.values()} <= {0}


def test_only_turns_since_a_time_are_told_of() -> None:
    made = room(create("m-1"), create("m-2", "-1", 2), create("m-3", "+1", 3))
    [found] = backtest(made, Plan(made.rules, NEVER, since=at(3))).values()
    assert [one.flip.entry.turn for one in found.cases] == ["m-3"]
    assert (found.observations, found.stale) == (1, 1)


def test_a_candidate_that_exempts_a_holder_has_none_of_its_flips() -> None:
    made = room(create("m-1"), create("m-2", "-1", 2))
    [found] = backtest(made, Plan(made.rules, Rules(Policy(exempt_holders=frozenset({"ann"}))))).values()
    assert [one.change for one in found.cases] == [Change.VANISHES]
    assert (found.observations, found.unread) == (0, 0)


@pytest.mark.parametrize(
    ("exempt", "unread"), [(frozenset({HolderKind.BOT}), 0), (frozenset[HolderKind](), 1)]
)
def test_what_was_never_read_is_counted(exempt: frozenset[HolderKind], unread: int) -> None:
    made = room(create("m-1", holder_kind=HolderKind.BOT), create("m-2", "+1", 2))
    kinds = {"m-1": HolderKind.BOT}
    candidate = Rules(Policy(exempt_kinds=exempt))
    plan = Plan(made.rules, candidate, kind=lambda entry: kinds.get(str(entry.turn), HolderKind.USER))
    [found] = backtest(made, plan).values()
    assert (found.observations, found.unread) == (1, unread)


def test_each_language_is_judged_by_its_own_policy() -> None:
    made = room(create("m-1"), create("m-2", "-1 0.7", 2))
    chinese = {
        at: msgspec.structs.replace(
            one,
            observations=tuple(
                msgspec.structs.replace(seen, model=Model("m", "1", "rule", "zh-Hant"))
                for seen in one.observations
            ),
        )
        for at, one in made.ledger.items()
    }
    made.ledger = chinese
    [only] = cases(backtest(made, Plan(made.rules, Rules(policies={"zh": flipping().policy}))))
    assert (only.change, only.language) == (Change.VANISHES, "zh")
    [only] = cases(backtest(made, Plan(made.rules, flipping())))
    assert only.change is Change.VANISHES
    [only] = cases(backtest(made, Plan(made.rules, Rules(policies={"en": flipping().policy}))))
    assert only.change is Change.STANDS


def test_what_stands_and_what_the_settings_give_may_differ() -> None:
    """Where the policy in force was another then."""
    made = room(create("m-1"), create("m-2", "-1 0.7", 2))
    [found] = backtest(made, Plan(flipping(), made.rules)).values()
    assert ([one.change for one in found.cases], found.unlike) == ([Change.STANDS], 1)


def test_what_was_folded_stale_by_the_run_itself_is_not_counted_again() -> None:
    made = room(create("m-1"), create("m-2", "-1", 3))
    [seen] = made.ledger[3].observations
    again = msgspec.structs.replace(seen, read_under=Stance.NEUTRAL, marks=(Mark.STALE,))
    made.ledger[3] = msgspec.structs.replace(made.ledger[3], observations=(again,), under=(Stance.SUPPORT,))
    [found] = backtest(made).values()
    assert ([one.change for one in found.cases], found.stale) == ([Change.STANDS], 0)
