"""What judges a soak sees what it is there to see; the pace and the crowd keep what they promise."""

import datetime as dt
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

import pytest

from tests.benchmarks import crowd, keyspace, trends
from tests.benchmarks.crowd import Crowd
from tests.benchmarks.feeding import Pace
from tests.benchmarks.keyspace import Keyspace, Kind
from tests.benchmarks.measuring import Figure
from tests.benchmarks.plan import Plan
from tests.benchmarks.processes import resident
from tests.benchmarks.sampling import Counted, Sample
from tracker.records import CreateTurn, DeclareTarget, DeleteTurn, EditTurn, check

TIMES = [5.0 * number for number in range(288)]
CHANCE = random.Random(3)
SERIES: dict[str, tuple[Sequence[float], bool]] = {
    "flat": ([100.0 for _ in TIMES], True),
    "noisy": ([100.0 + CHANCE.gauss(0, 4) for _ in TIMES], True),
    "one peak at the end": ([100.0] * (len(TIMES) - 1) + [300.0], True),
    "a little growth": ([100.0 + 4.0 * time / TIMES[-1] for time in TIMES], True),
    "growing": ([100.0 + 10.0 * time / TIMES[-1] for time in TIMES], False),
    "noisy and growing": ([100.0 + 10.0 * time / TIMES[-1] + CHANCE.gauss(0, 4) for time in TIMES], False),
    "a step near the end": ([100.0] * 220 + [110.0] * 68, False),
    "falling": ([100.0 - 10.0 * time / TIMES[-1] for time in TIMES], False),
}


def samples(memory: Sequence[float], behind: Sequence[int] = ()) -> list[Sample]:
    waiting = behind or [0] * len(memory)
    return [
        Sample(
            time,
            200,
            1000 + late,
            Counted(finished=1000, lag={"0": late}),
            {"agent 1": value, "redis": value},
        )
        for time, value, late in zip(TIMES, memory, waiting, strict=False)
    ]


def met(figures: Sequence[Figure]) -> dict[str, bool]:
    return {figure.name: figure.goal.met_by(figure.median) for figure in figures if figure.goal}


@pytest.mark.parametrize("name", SERIES)
def test_memory_is_flat_or_not(name: str) -> None:
    values, flat = SERIES[name]
    verdicts = met(list(trends.of_memory(samples(values), judged=["agent 1"])))
    assert len(verdicts) == 2
    assert all(verdicts.values()) is flat


def test_a_trend_is_told_in_percent_and_by_the_second() -> None:
    found = trends.trend([0.0, 10.0, 20.0, 30.0, 40.0], [100.0, 110.0, 120.0, 130.0, 140.0])
    assert (found.growth, found.drift, found.rise) == pytest.approx((40.0, 40.0, 40.0))
    assert found.slope == pytest.approx(1.0)


def test_what_is_not_judged_has_no_goal() -> None:
    assert not met(list(trends.of_memory(samples([1.0, 50.0] * 9), judged=[])))


@pytest.mark.parametrize(
    ("behind", "bounded"),
    [
        ([40, 300] * 20, True),
        ([0] * 20 + [5000] + [0] * 19, True),
        (list(range(0, 4000, 100)), False),
    ],
    ids=["up and down", "one peak", "more and more"],
)
def test_lag_is_bounded_or_not(behind: Sequence[int], bounded: bool) -> None:
    figures = list(trends.of_lag(samples([100.0] * len(behind), behind), batch=500))
    assert met(figures) == {"lag: rise, first to last fifth": bounded}
    assert figures[0].most == max(behind) == figures[-1].most


def test_a_warm_up_is_a_fifth_and_at_least_a_minute() -> None:
    half_hour, short = Plan(), Plan(asked_minutes=0.5)
    assert (half_hour.seconds, half_hour.warm_up, half_hour.period) == (1800, 360, 5)
    assert (short.seconds, short.warm_up, short.period) == (120, 60, 1)
    assert Plan(quick=True).seconds == 180
    taken = samples([1.0] * 100)
    assert [sample.seconds for sample in trends.settled(taken, 490.0)] == [490.0, 495.0]


def test_what_the_pace_missed_is_made_up_for() -> None:
    pace = Pace(100.0)
    assert [pace.due(elapsed) for elapsed in (0.0, 0.05, 0.054, 0.06, 3.0, 3.0, 2.0)] == [
        0,
        5,
        0,
        1,
        294,
        0,
        0,
    ]


def test_a_pace_keeps_a_rate_that_is_no_whole_number() -> None:
    pace = Pace(333.3)
    assert sum(pace.due(0.02 * tick) for tick in range(500 * 60 + 1)) == int(600 * 333.3)


def test_a_crowd_is_bounded_and_says_everything() -> None:
    start, living = dt.datetime(2026, 1, 1, tzinfo=dt.UTC), 20
    speaking = Crowd(living, seed=1)
    said = [
        record
        for second in range(2000)
        for record in speaking.records(10, start + dt.timedelta(seconds=second))
    ]
    assert all(check(record) is not None for record in said)
    kinds = Counter(type(record) for record in said)
    assert kinds.keys() == {CreateTurn, EditTurn, DeleteTurn, DeclareTarget}
    assert kinds[EditTurn] / len(said) == pytest.approx(crowd.EDITS, rel=0.3)
    assert kinds[DeleteTurn] / len(said) == pytest.approx(crowd.DELETES, rel=0.3)
    ended = speaking.begun - living
    assert ended > living
    assert len({record.conversation for record in said[-100:]}) <= living + 5


def test_a_share_of_turns_is_late_and_each_is_new() -> None:
    newest: dict[str, dt.datetime] = {}
    late, turns = 0, set()
    speaking, now = Crowd(5, seed=2), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    for second in range(20_000):
        [record] = speaking.records(1, now + dt.timedelta(seconds=second))
        if isinstance(record, CreateTurn):
            late += record.sent_at < newest.get(record.conversation, record.sent_at)
            turns.add((record.conversation, record.turn))
        newest[record.conversation] = max(record.sent_at, newest.get(record.conversation, record.sent_at))
    assert late / len(turns) == pytest.approx(crowd.LATE, rel=0.2)


def test_the_same_seed_says_the_same() -> None:
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    assert Crowd(9).records(500, now) == Crowd(9).records(500, now)


METRICS = """\
# TYPE volteface_agent_finished_total counter
volteface_agent_finished_total {finished}
# TYPE volteface_agent_refused_total counter
volteface_agent_refused_total{{reason="too_late"}} 2.0
volteface_agent_refused_total{{reason="null"}} 1.0
# TYPE volteface_agent_partition_lag gauge
volteface_agent_partition_lag{{partition="{partition}"}} {lag}
"""


def test_what_agents_say_is_added_up() -> None:
    counted = Counted()
    counted.add(METRICS.format(finished=10.0, partition=0, lag=7.0))
    counted.add(METRICS.format(finished=5.0, partition=1, lag=0.0))
    assert counted == Counted(finished=15, refused=6, lag={"0": 7, "1": 0})


def test_memory_counts_children_too() -> None:
    script = "import sys; held = bytearray(b'x') * 60_000_000; print(flush=True); sys.stdin.read()"
    alone = resident({"me": os.getpid()})["me"]
    with subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1) as child:
        assert child.stdin and child.stdout
        child.stdout.readline()
        found = resident({"me": os.getpid(), "child": child.pid})
        child.stdin.close()
    assert found["child"] > 60
    assert found["me"] > alone + 50
    assert resident({"gone": child.pid}) == {"gone": 0.0}


def test_growth_beside_the_keys_is_told_apart() -> None:
    mb = keyspace.MB
    before = Keyspace(10 * mb, {"ledger": Kind(2, 3 * mb)})
    after = Keyspace(17 * mb, {"ledger": Kind(4, 7 * mb), "window": Kind(1, mb)})
    found = {(figure.name, figure.unit): figure.rounds for figure in keyspace.figures(before, after, 5 * mb)}
    assert found["redis: data that a record leaves", "bytes"] == (1.0,)
    assert found["redis: growth beside its keys", "MB"] == (2.0,)
    assert found["redis: window", "keys"] == (0, 1)
