"""Every verdict on a partition, from facts at times that the tests give."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream.offsets import Place
from stream.progress import Due, Facts, Judgement, Limits, Look, Progress, Verdict

P, Q = ("turns", 0), ("turns", 1)
WITHIN = Limits(stall=10.0, routine=5.0, batch=30.0, join=20.0, outage=100.0)

IDLE = Facts(end=7, position=7, fetched=6, committed=7, place=Place(6, None, 7))
UNFETCHED = Facts(end=9, position=7, fetched=6, committed=7, place=Place(6, None, 7))
WORKED_ON = Facts(end=9, position=9, fetched=8, committed=7, place=Place(8, 7, 7))
QUEUED = Facts(end=9, position=9, fetched=8, committed=7, place=Place(6, None, 7))
UNCOMMITTED = Facts(end=9, position=9, fetched=8, committed=7, place=Place(8, None, 9))
SILENT = Facts(answers=False)


class Seen:
    """Looks at one partition, or more."""

    def __init__(self, within: Limits = WITHIN) -> None:
        self.progress, self.fetches = Progress(within), 0

    def at(self, now: float, facts: Facts, fetches: int | None = None, **rest: Any) -> Judgement:
        return self.all(now, {P: facts}, fetches, **rest)[P]

    def all(self, now: float, facts: Any, fetches: int | None = None, **rest: Any) -> dict[Any, Judgement]:
        """Fetches come back between two looks, unless their number is given."""
        self.fetches = self.fetches + 1 if fetches is None else fetches
        return self.progress.look(now, Look(facts=facts, fetches=self.fetches, **rest))


def changed(facts: Facts, **rest: Any) -> Facts:
    given = {name: getattr(facts, name) for name in Facts.__slots__}
    return Facts(**given | rest)


def test_nothing_is_due_of_an_idle_partition_however_long() -> None:
    seen = Seen()
    for now in (0.0, 1e3, 1e6):
        assert seen.at(now, IDLE) == Judgement(Verdict.IDLE, 0)


@pytest.mark.parametrize(
    "facts",
    [
        Facts(end=0),  # a fresh topic
        Facts(end=9, position=9, fetched=6, committed=7, place=Place(6, None, 7)),  # ends with markers
        Facts(end=9, position=9, committed=9),  # a start, where nothing has come
        Facts(end=9, position=9, committed=3),  # the same, after what was never committed aged out
    ],
)
def test_what_is_no_record_is_never_due(facts: Facts) -> None:
    seen = Seen()
    assert [seen.at(now, facts).verdict for now in (0.0, 1e6)] == [Verdict.IDLE] * 2


@pytest.mark.parametrize(
    ("facts", "due", "allowed"),
    [
        (UNFETCHED, Due.FETCH, 5.0),
        (WORKED_ON, Due.FINISH, 30.0),
        (QUEUED, Due.FINISH, 30.0),
        (UNCOMMITTED, Due.COMMIT, 5.0),
        (SILENT, Due.ANSWER, 5.0),
        (changed(WORKED_ON, rebalance=3), Due.JOIN, 20.0),
    ],
)
def test_what_stands_still_waits_then_stalls_then_is_over(facts: Facts, due: Due, allowed: float) -> None:
    seen = Seen()
    stall = allowed + WITHIN.stall
    times = (100.0, 101.0, 99.9 + stall, 100.0 + stall, 100.0 + stall + WITHIN.stall)
    judged = [seen.at(now, facts) for now in times]
    assert [each.verdict for each in judged] == ["moving", "waiting", "waiting", "stalled", "stalled"]
    assert [each.over for each in judged] == [False] * 4 + [True]
    assert {each.due for each in judged} == {due}
    assert [each.seconds for each in judged] == pytest.approx([now - 100.0 for now in times])


@pytest.mark.parametrize(
    ("facts", "moved"),
    [
        (UNFETCHED, {"position": 8}),
        (WORKED_ON, {"place": Place(8, 8, 8)}),
        (QUEUED, {"place": Place(7, 7, 7)}),
        (UNCOMMITTED, {"committed": 8}),
        (changed(IDLE, rebalance=3), {"rebalance": 4}),
    ],
)
def test_what_goes_on_moves_however_late_it_was(facts: Facts, moved: dict[str, Any]) -> None:
    seen = Seen()
    for now in (0.0, 500.0):
        late = seen.at(now, facts)
    assert late.verdict is Verdict.STALLED
    assert seen.at(501.0, changed(facts, **moved)).verdict is Verdict.MOVING


def test_lag_counts_from_the_first_unfinished_record() -> None:
    seen = Seen()
    found = (IDLE, UNFETCHED, WORKED_ON, QUEUED, UNCOMMITTED, SILENT)
    assert [seen.at(0.0, facts).lag for facts in found] == [0, 2, 2, 2, 0, None]


def test_a_commit_that_does_not_come_is_told_apart_from_turns_that_are_finished() -> None:
    """Acks move on and commits do not: what stalls is the commit, though the agent works."""
    seen = Seen()
    for step in range(20):
        last = 8 + step
        facts = Facts(end=100, position=last + 1, fetched=last, committed=7, place=Place(last, last, last))
        judged = seen.at(float(step), facts, signs=step)
    assert (judged.verdict, judged.due, judged.uncommitted) == (Verdict.STALLED, Due.COMMIT, 19.0)


def test_an_outage_waits_far_longer_than_a_batch() -> None:
    seen = Seen()
    judged = [seen.at(now, WORKED_ON, paused=True).verdict for now in (0.0, 41.0, 139.0, 140.0)]
    assert judged == ["waiting", "waiting", "waiting", "stalled"]


@settings(deadline=None)
@given(gaps=st.lists(st.floats(0.0, 139.0), min_size=1, max_size=30))
def test_an_outage_never_stalls_while_the_agent_tries_again(gaps: list[float]) -> None:
    seen, now = Seen(), 0.0
    for tries, gap in enumerate(gaps):
        now += gap
        assert seen.at(now, WORKED_ON, paused=True, signs=tries).verdict is Verdict.WAITING


def test_without_the_broker_nothing_is_due_that_only_it_could_do() -> None:
    seen = Seen()
    away = [changed(facts, end=None) for facts in (IDLE, UNFETCHED, UNCOMMITTED, changed(IDLE, rebalance=1))]
    for facts in away:
        assert [seen.at(now, facts).verdict for now in (0.0, 1e6)] == [Verdict.WAITING] * 2
    assert seen.at(0.0, changed(WORKED_ON, end=None)).due is Due.FINISH


def test_behind_others_a_partition_waits_while_they_are_worked_on() -> None:
    seen = Seen()
    for signs in range(100):
        assert seen.at(10.0 * signs, WORKED_ON, signs=signs).verdict is Verdict.MOVING
        assert not seen.at(10.0 * signs, QUEUED, signs=signs).over


def test_a_record_that_the_agent_has_lost_stalls_though_others_are_worked_on() -> None:
    seen, lost = Seen(), changed(WORKED_ON, in_hand=False)
    judged = [seen.at(10.0 * signs, lost, signs=signs).verdict for signs in range(5)]
    assert judged == ["moving", "waiting", "waiting", "waiting", "stalled"]


def test_what_is_not_fetched_waits_while_the_way_to_the_agent_is_full() -> None:
    seen = Seen()
    for now in range(0, 1000, 100):
        judged = seen.all(float(now), {P: QUEUED, Q: UNFETCHED}, fetches=1, signs=now)
    assert judged[Q] == Judgement(Verdict.WAITING, 2)


def test_what_is_not_fetched_stalls_while_others_are_fetched() -> None:
    seen = Seen()
    for now in range(20):
        judged = seen.all(float(now), {P: QUEUED, Q: UNFETCHED}, signs=now)
    assert (judged[Q].verdict, judged[Q].due) == (Verdict.STALLED, Due.FETCH)
    assert judged[P].verdict is Verdict.MOVING


def test_it_can_be_turned_off() -> None:
    seen = Seen(Limits(stall=0.0, routine=5.0, batch=30.0, join=20.0, outage=100.0))
    judged = [seen.at(now, WORKED_ON) for now in (0.0, 1e6)]
    assert [(each.verdict, each.over) for each in judged] == [("moving", False), ("waiting", False)]
    assert judged[-1].seconds == 1e6


def test_a_partition_that_goes_and_comes_back_begins_anew() -> None:
    seen = Seen()
    seen.at(0.0, UNFETCHED)
    assert seen.all(50.0, {}) == {}
    assert seen.at(100.0, UNFETCHED).verdict is Verdict.MOVING


offsets = st.none() | st.integers(0, 5)
facts_of = st.builds(
    Facts,
    answers=st.booleans(),
    rebalance=st.integers(0, 1),
    end=offsets,
    position=offsets,
    fetched=offsets,
    committed=offsets,
    place=st.builds(Place, offsets, offsets, offsets),
    in_hand=st.booleans(),
)


@settings(deadline=None)
@given(looks=st.lists(st.tuples(facts_of, st.integers(0, 3), st.booleans()), min_size=1, max_size=20))
def test_nothing_stalls_sooner_than_it_may_and_over_means_stalled(looks: list[Any]) -> None:
    seen = Seen()
    for number, (facts, signs, paused) in enumerate(looks):
        judged = seen.at(number * 0.7, facts, signs=signs, paused=paused)  # 13.3 s at most
        assert judged.verdict is not Verdict.STALLED
        assert not judged.over
        assert judged.lag is None or judged.lag >= 0
        assert judged.due is not None or judged.verdict in (Verdict.IDLE, Verdict.WAITING)


@settings(deadline=None)
@given(facts=facts_of, paused=st.booleans())
def test_whatever_is_due_stalls_if_nothing_ever_changes(facts: Facts, paused: bool) -> None:
    seen = Seen()
    first = seen.at(0.0, facts, paused=paused)
    last = seen.at(1e6, facts, paused=paused)
    assert (last.verdict is Verdict.STALLED) == (first.due is not None)
    assert last.over == (first.due is not None)
