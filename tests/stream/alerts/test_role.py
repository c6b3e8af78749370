"""The role on both brokers and a real Redis: ends, kills, rebalances and outages lose and repeat nothing."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream.alerts import role
from stream.embedded import EmbeddedRedis
from stream.embedded.process import free_port
from stream.settings import Settings
from tests.end_to_end.harness import LEFT_OPEN, agent_process, settings_of, sweeping
from tests.stream.alerts.harness import collecting, produce, running
from tests.tracker.alert_builders import BURST, FLIP, Room, fold, minutes
from tracker import alert_events
from tracker.alert_rules import BurstRule, FlipBackRule, Rule, SameWayRule
from tracker.events import Event
from tracker.stances import Stance

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.long]

RULES: tuple[Rule, ...] = (
    BurstRule(name="burst", count=4, within=minutes(5), cooldown=minutes(1)),
    SameWayRule(name="pull", holders=2, within=minutes(10)),
    FlipBackRule(name="back", within=minutes(3)),
)
RULES_FILE = """
[[rules]]
name = "burst"
kind = "burst"
count = 4
within = "5m"
cooldown = "1m"
[[rules]]
name = "pull"
kind = "same_way"
holders = 2
within = "10m"
[[rules]]
name = "back"
kind = "flip_back"
within = "3m"
"""
SCRIPT = """
import asyncio, pathlib, sys
from stream import logs, roles, settings
from stream.alerts import role, rules
async def main():
    given = settings.load()
    logs.configure(given)
    role.BATCH_EVENTS = 20  # so that there is a middle to be killed in
    with roles.stopping() as stop:
        found = rules.read(pathlib.Path({file!r}))
        await role.run(given, found, role.store(given), stop=stop)
asyncio.run(main())
"""


@pytest.fixture(autouse=True, scope="module")
def _swept() -> Iterator[None]:
    """What aiokafka leaves open where it is ended in its middle is not the next module's fault."""
    with sweeping():
        yield


@pytest.fixture(scope="module")
def redis() -> Iterator[EmbeddedRedis]:
    """One Redis: that its versions agree is tested with the store."""
    with EmbeddedRedis() as server:
        yield server


@pytest.fixture
def settings(broker: str, redis: EmbeddedRedis, topic_prefix: str) -> Settings:
    made = settings_of(f"kafka://{broker}", redis.url, topic_prefix, idempotence=False)
    return msgspec.structs.replace(made, rebalance_seconds=2.0, batch_seconds=0.5)


def log(count: int, rooms: int = 8, seed: int = 1) -> list[Event]:
    """Events of several conversations: flips by few people whom others move, some of them taken back."""
    chance, made, found = (
        random.Random(seed),
        [Room(f"room {number}") for number in range(rooms)],
        list[Event](),
    )
    flips: dict[Room, list[Event]] = defaultdict(list)
    for number in range(count):
        room, seconds = chance.choice(made), 20.0 * number / rooms
        if flips[room] and chance.random() < 0.15:
            found.append(room.retracted(chance.choice(flips[room]), seconds))
            continue
        before, after = chance.sample([Stance.SUPPORT, Stance.NEUTRAL, Stance.OPPOSE], 2)
        given: dict[str, Any] = {"before": before, "by": chance.sample("abc", 1), "seconds": seconds}
        flips[room].append(room.flip(chance.choice("abcd"), after, **given))
        found.append(flips[room][-1])
    return found


def expected(found: Sequence[Event], rules: Sequence[Rule] = RULES) -> dict[str, Any]:
    """The alerts of a log by id, as JSON has them."""
    rooms: dict[str, list[Event]] = defaultdict(list)
    for event in found:
        rooms[event.data.conversation].append(event)
    alerts = [alert for events in rooms.values() for alert in fold(events, rules)[1]]
    return {alert.id: msgspec.json.decode(alert_events.encode(alert)) for alert in alerts}


async def test_alerts_leave_once_and_a_new_start_goes_on(settings: Settings) -> None:
    found = log(120)
    wanted = expected(found)
    assert {"volteface.alert.raised", "volteface.alert.withdrawn"} == {
        each["type"] for each in wanted.values()
    }
    async with collecting(settings) as sent:
        await produce(settings, found[:70])
        async with running(settings, RULES):
            await sent.until(lambda seen: seen.alerts.keys() >= expected(found[:70]).keys(), "the first ones")
        await produce(settings, found[70:])
        async with running(settings, RULES):
            await sent.until(lambda seen: seen.alerts.keys() >= wanted.keys(), "the others")
        await sent.rest()
    assert sent.alerts == wanted
    assert sent.keys <= {b"default/room%%20%d" % number for number in range(8)}


@pytest.mark.long
async def test_kill_9_in_the_middle_raises_each_alert_once_by_id(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(RULES_FILE, encoding="utf-8")
    found, script = log(900, rooms=10), SCRIPT.format(file=str(file))
    wanted = expected(found)
    async with collecting(settings) as sent:
        await produce(settings, found)
        with agent_process(settings, tmp_path / "role.log", script) as process:
            await sent.until(lambda seen: len(seen.alerts) >= len(wanted) // 4, "a part of it")
            process.kill()
            process.wait(timeout=10)
        await sent.rest()
        assert len(sent.alerts) < len(wanted)
        with agent_process(settings, tmp_path / "role.log", script):
            await sent.until(lambda seen: len(seen.alerts) >= len(wanted), "the rest")
            await sent.rest()
    assert sent.alerts == wanted


@pytest.mark.long
async def test_another_process_takes_its_share_and_gives_it_back(settings: Settings) -> None:
    found = log(240)
    async with collecting(settings) as sent, running(settings, RULES):
        await produce(settings, found[:80])
        async with running(settings, RULES):
            await produce(settings, found[80:160])
            await sent.until(
                lambda seen: seen.alerts.keys() >= expected(found[:160]).keys(), "while both run"
            )
        await produce(settings, found[160:])
        await sent.until(lambda seen: seen.alerts.keys() >= expected(found).keys(), "after one ended")
        await sent.rest()
    assert sent.alerts == expected(found)


async def test_what_redis_lost_is_found_again_from_the_events(settings: Settings) -> None:
    room, port = Room("a"), free_port()
    flips = [room.flip("x"), room.flip("y"), room.flip("z")]
    here = msgspec.structs.replace(settings, redis=f"redis://127.0.0.1:{port}/0")
    rules = (FLIP, BURST)
    async with collecting(here) as sent:
        with EmbeddedRedis(port=port):
            await produce(here, flips[:2])
            task = asyncio.create_task(_forever(here, rules))
            await sent.until(lambda seen: len(seen.alerts) == 2, "the flips")
        await produce(here, flips[2:])  # Redis is away, and comes back empty
        with EmbeddedRedis(port=port):
            await sent.until(lambda seen: len(seen.alerts) == 4, "the burst")
            await sent.rest()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    assert sent.alerts == expected(flips, rules)


async def _forever(settings: Settings, rules: Sequence[Rule]) -> None:
    async with running(settings, rules) as task:
        await task


async def test_from_now_on_leaves_out_what_was_there(settings: Settings) -> None:
    old, new = Room("old"), Room("new")
    before, after = [old.flip("x"), old.flip("y")], [new.flip("x"), old.flip("z")]
    for event in before:  # in batches of their own: Tansu lists a last batch as if it held one record
        await produce(settings, [event])
    async with collecting(settings) as sent:
        async with running(settings, (FLIP, BURST), from_now=True):
            pass
        await produce(settings, after)
        async with running(settings, (FLIP, BURST), from_now=True):
            await sent.until(lambda seen: len(seen.alerts) == 2, "the new ones")
            await sent.rest()
    assert sent.alerts == expected(after, (FLIP,))


def test_no_runs_agents_have_the_group_of_its_alerts() -> None:
    assert role.group(Settings()) == "volteface-live.alerts"
