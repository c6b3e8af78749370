"""kill -9 in the middle of a run, and the run comes to exactly what an undisturbed one comes to."""

import random
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from stream.settings import Settings
from tests.end_to_end.harness import (
    LEFT_OPEN,
    Collected,
    agent_process,
    collecting,
    drained,
    gapless,
    producing,
    running,
    target,
    turn,
)
from tests.stream.store.dump import dump
from tracker.records import EPOCH, Record

pytestmark = pytest.mark.filterwarnings(LEFT_OPEN)

RUN = "crash"
ROOMS, TURNS, SEED = 20, 600, 20261129
AHEAD = 150  # records that wait for the agent when it is killed, as long as it is not faster than our look
SHARES = {"tansu": (0.5,), "kafka": (0.25, 0.6)}  # how far the run is at each kill


def script() -> list[Record]:
    """The same records every time: two targets a room, and holders who often change their minds."""
    chance = random.Random(SEED)
    rooms = [f"room {number}" for number in range(ROOMS)]
    declared: list[Record] = [
        target(room, proposition, sent_at=EPOCH)
        for room in rooms
        for proposition in ("whether x", "whether y")
    ]
    return declared + [_turn(chance, rooms[number % ROOMS], number) for number in range(TURNS)]


def _turn(chance: random.Random, room: str, number: int) -> Record:
    text = chance.choice(["+1 yes", "-1 no", "+0 so so", "hm"])
    late = chance.random() < 0.05
    sent_at = EPOCH.replace(year=2025, day=1 if late else 2, hour=number // 60, minute=number % 60)
    reply = f"m-{number - ROOMS}" if chance.random() < 0.5 else None
    holder = chance.choice(["ann", "bo/b", "çem"])
    return turn(room, f"m-{number}", text, holder=holder, sent_at=sent_at, reply_to=reply)


@pytest.fixture
def disturbed(settings: Settings) -> Settings:
    """Small batches, so that there is a middle to be killed in."""
    return msgspec.structs.replace(
        settings, run=RUN, rebalance_seconds=2.0, batch_seconds=0.5, batch_records=10
    )


@pytest.fixture
def calm(disturbed: Settings) -> Settings:
    """The same run under another prefix, which stands in no event and no id."""
    return msgspec.structs.replace(disturbed, topic_prefix=f"test-{uuid4().hex[:12]}", batch_records=500)


@pytest.mark.long
async def test_a_killed_run_ends_as_an_undisturbed_one(
    disturbed: Settings, calm: Settings, named_broker: tuple[str, object], tmp_path: Path
) -> None:
    records = script()
    async with (
        producing(disturbed) as producer,
        collecting(disturbed) as killed,
        producing(calm) as other,
        collecting(calm) as expected,
    ):
        sent = 0
        for share in SHARES[named_broker[0]]:
            enough = int(share * len(records))
            await producer.records(records[sent : enough + AHEAD])
            sent = enough + AHEAD
            with agent_process(disturbed, tmp_path / "agent.log") as process:
                await killed.until(
                    lambda seen, enough=enough: len(seen.arrivals()) >= enough, f"{share} of it"
                )
                process.kill()
        await producer.records(records[sent:])
        with agent_process(disturbed, tmp_path / "agent.log"):
            await killed.until(lambda seen: len(seen.arrivals()) == len(records), "the rest")
            await drained(disturbed)
        await other.records(records)
        async with running(calm):
            await expected.until(lambda seen: len(seen.arrivals()) == len(records), "the undisturbed run")
            await drained(calm)
        for collected in (killed, expected):
            await collected.rest()
    assert await state(disturbed) == await state(calm)
    compare(killed, expected)


async def state(settings: Settings) -> dict[bytes, object]:
    """All that Redis holds of the run, under keys without the prefix."""
    found = await dump(settings.redis, settings.run, settings.topic_prefix)
    assert found
    return {name.removeprefix(settings.topic_prefix.encode()): content for name, content in found.items()}


def compare(killed: Collected, expected: Collected) -> None:
    """The same events, though some perhaps twice, with the same payloads and without a gap."""
    assert killed.events("flips") == expected.events("flips")
    assert killed.events() == expected.events()
    assert len(expected.events("flips")) > 100
    assert gapless(killed.events())
    assert set(killed.events("flips")) <= set(killed.events())
    assert killed.arrivals() == expected.arrivals()
    assert not killed.dead_letters
