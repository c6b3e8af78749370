"""Every fault, at a seeded moment of a run: afterwards all is as if nothing had happened."""

import random

import pytest

from tests.end_to_end.harness import LEFT_OPEN
from tests.faults.faults import Fault
from tests.faults.feeding import begun, produce
from tests.faults.judging import judge
from tests.faults.script import script
from tests.faults.stand import Stand

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.timeout(400)]

TURNS = 240
AHEAD = 120  # records that wait for the agents when the fault comes
MOMENTS = (0.1, 0.5)  # the share of the records that are applied by then


async def test_a_fault_changes_nothing(stand: Stand, fault: Fault, seed: int) -> None:
    chance = random.Random(f"{fault.name} {seed}")
    records = script(f"{fault.name} {seed}", TURNS)
    before = stand.twin.course.entries
    await stand.twin.take(records)
    moment = int(chance.uniform(*MOMENTS) * len(records))
    await begun(stand, records[: moment + AHEAD], before + moment)
    said = stand.said(fault.bites) if fault.bites else 0
    await fault.inject(stand)
    if not fault.of_broker:
        await produce(stand, records[moment + AHEAD :])
    await fault.hold(stand, said, chance)
    await fault.lift(stand)
    if fault.of_broker:
        await produce(stand, records[moment + AHEAD :])
    await judge(stand)
    await stand.one_agent_stays()
    stand.sound = True
