"""Two agents, two kills and a rebalance between them, over many turns: nothing lost, nothing twice."""

import random
import time
from signal import SIGKILL, SIGTERM

import pytest

from tests.end_to_end.harness import LEFT_OPEN
from tests.faults.feeding import begun, produce
from tests.faults.judging import judge
from tests.faults.script import script
from tests.faults.stand import Stand

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.timeout(900)]

ROOMS = 20
AHEAD = 150  # records that wait for the agents when they are disturbed
SHARES = ((0.05, 0.3), (0.4, 0.55), (0.65, 0.85))  # how far the run is at kill, rebalance and kill


async def test_kills_and_a_rebalance_change_nothing(stand: Stand, turns: int, long_seed: int) -> None:
    chance = random.Random(f"long {long_seed}")
    records = script(f"long {long_seed}", turns, ROOMS)
    before, began = stand.twin.course.entries, time.monotonic()
    await stand.twin.take(records)
    stand.start_agent()
    sent = 0
    for disturb, share in zip((kill, rebalance, kill), SHARES, strict=True):
        moment = int(chance.uniform(*share) * len(records))
        await begun(stand, records[sent : moment + AHEAD], before + moment)
        sent = moment + AHEAD
        await disturb(stand, chance)
    await produce(stand, records[sent:])
    repeated = await judge(stand)
    await stand.one_agent_stays()
    stand.sound = True
    seconds = time.monotonic() - began
    print(f"| {long_seed} | {len(records)} | {repeated} sent again so far | {seconds:.0f} s |")


async def kill(stand: Stand, chance: random.Random) -> None:
    """One of the two dies, and comes again."""
    await stand.end_agent(SIGKILL, chance.randrange(2))
    stand.start_agent()


async def rebalance(stand: Stand, chance: random.Random) -> None:
    """A third comes, and one of the first two leaves."""
    said = stand.said("agent.started")
    stand.start_agent()
    await stand.saying("agent.started", said)
    assert await stand.end_agent(SIGTERM, chance.randrange(2)) == 0, stand.tail()
