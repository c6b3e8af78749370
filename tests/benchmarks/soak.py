"""Agents at four fifths of what they can do, for half an hour: memory stays flat, and lag bounded.

Everything is a process of its own: broker, Redis, worker, agents; this one sends and looks. What they can do
is measured first, on a backlog that takes them 20 seconds. Then agents and worker start anew, since what a
burst has once taken and given back would hide what leaks afterwards.
"""

import asyncio
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from signal import SIGCONT, SIGSTOP
from uuid import uuid4

import msgspec

from deploy.kafka.kafka import KafkaBroker
from stream import topics
from stream.embedded import EmbeddedBroker, EmbeddedRedis
from stream.embedded.broker import Broker
from stream.settings import Settings
from tests.benchmarks import keyspace, trends
from tests.benchmarks.crowd import Crowd
from tests.benchmarks.feeding import Feeder, feeding
from tests.benchmarks.keyspace import Keyspace
from tests.benchmarks.measuring import Conditions, Figure, Goal, Result
from tests.benchmarks.plan import Plan
from tests.benchmarks.processes import AgentRole, WorkerRole
from tests.benchmarks.sampling import Sample, Watch, watching

LOAD = 0.8  # of capacity
LIVING = 200  # conversations at a time
PARTITIONS = 4
FIRST_BACKLOG, MOST_GROWTH = 200, 8  # records, and how many times as many the next one may be
WORK_SECONDS, AIMED_SECONDS = 20.0, 25.0  # of the backlog that counts: at least, and about
SETTLE_SECONDS = 10.0  # partitions find their agents, and agents look at them
PATIENCE_SECONDS = 120.0
SETTLED = Goal(least=2.0)  # before, all conversations are young, and a correction has little to fold anew


class Stand(msgspec.Struct, frozen=True):
    """What runs, and what it is given."""

    settings: Settings
    broker: Broker
    redis: EmbeddedRedis
    worker: WorkerRole
    agents: Sequence[AgentRole]
    crowd: Crowd

    @property
    def pids(self) -> dict[str, int]:
        """The processes by name."""
        ours = {f"agent {number}": agent.pid for number, agent in enumerate(self.agents, 1)}
        return ours | {"worker": self.worker.pid, "redis": self.redis.pid, "broker": self.broker.pid}

    @property
    def judged(self) -> Sequence[str]:
        """Those whose memory must not grow: the others hold what was said."""
        return [name for name in self.pids if name not in ("redis", "broker")]

    def begin_anew(self) -> None:
        """Start worker and agents once more."""
        for role in (*self.agents, self.worker):
            role.halt()
        for role in (self.worker, *self.agents):
            role.resume()


class Soaked(msgspec.Struct, frozen=True):
    """What the soak saw."""

    samples: Sequence[Sample]
    left: int  # records that were not finished in the end
    before: Keyspace
    after: Keyspace


class Soak(Result, frozen=True, kw_only=True):
    """A result with the whole series, warm-up included."""

    series: Sequence[Sample]


def run(plan: Plan) -> Soak:
    """Capacity, then the soak."""
    with _standing(plan) as stand:
        capacity = asyncio.run(_capacity(stand))
        stand.begin_anew()
        soaked = asyncio.run(_soaked(stand, plan, LOAD * capacity))
        return Soak(
            name="soak",
            conditions=_conditions(stand, plan),
            figures=tuple(_figures(stand, plan, capacity, soaked)),
            series=soaked.samples,
        )


@contextmanager
def _standing(plan: Plan) -> Iterator[Stand]:
    """All processes, which end with the block, and with this process in any case."""
    with ExitStack() as stack:
        broker: Broker = KafkaBroker() if plan.broker == "kafka" else EmbeddedBroker()
        redis = EmbeddedRedis()
        for server in (broker, redis):
            stack.enter_context(server)
        settings = Settings(
            broker=broker.url, redis=redis.url, reader=plan.reader, partitions=PARTITIONS,
            topic_prefix=f"soak-{uuid4().hex[:8]}", broker_idempotence=plan.broker == "kafka",
        )  # fmt: skip
        worker = stack.enter_context(WorkerRole(settings))
        settings = msgspec.structs.replace(settings, worker=worker.address)
        asyncio.run(topics.ensure(settings))
        agents = [stack.enter_context(AgentRole(settings)) for _ in range(plan.agents)]
        yield Stand(settings, broker, redis, worker, agents, Crowd(LIVING))


async def _capacity(stand: Stand) -> float:
    """Records a second of a backlog that is large enough; smaller ones before it warm all up."""
    async with feeding(stand.settings, stand.crowd) as feeder, watching(stand.agents) as watch:
        await asyncio.sleep(SETTLE_SECONDS)
        count, took = FIRST_BACKLOG, await _worked_off(stand, feeder, watch, FIRST_BACKLOG)
        while took < WORK_SECONDS:
            count = math.ceil(count * min(MOST_GROWTH, AIMED_SECONDS / took))
            took = await _worked_off(stand, feeder, watch, count)
        return count / took


async def _worked_off(stand: Stand, feeder: Feeder, watch: Watch, count: int) -> float:
    """Seconds for so many records that wait for halted agents."""
    done = (await watch.counted()).finished
    for agent in stand.agents:
        agent.signal(SIGSTOP)
    await feeder.at_once(count)
    start = time.monotonic()
    for agent in stand.agents:
        agent.signal(SIGCONT)
    return await watch.finished(done + count, PATIENCE_SECONDS) - start


async def _soaked(stand: Stand, plan: Plan, rate: float) -> Soaked:
    """Feed evenly and look, then wait for the rest."""
    samples: list[Sample] = []
    async with feeding(stand.settings, stand.crowd) as feeder, watching(stand.agents) as watch:
        await asyncio.sleep(SETTLE_SECONDS)
        before, start = await keyspace.measured(stand.redis.url), await watch.counted()
        async with asyncio.TaskGroup() as group:  # an agent that does not answer ends the feeding, too
            looking = watch.samples(
                plan.period, lambda: (stand.crowd.begun, start.finished + feeder.sent), stand.pids, samples
            )
            task = group.create_task(looking)
            await feeder.paced(rate, plan.seconds)
            task.cancel()
        await watch.finished(start.finished + feeder.sent, PATIENCE_SECONDS)
        end = await watch.counted()
        left = feeder.sent - (end.finished - start.finished)
        return Soaked(samples, left, before, await keyspace.measured(stand.redis.url))


def _figures(stand: Stand, plan: Plan, capacity: float, soaked: Soaked) -> Iterator[Figure]:
    samples = trends.settled(soaked.samples, plan.warm_up)
    yield from trends.of_work(samples, capacity)
    generations = (samples[0].begun - LIVING) / LIVING
    yield Figure(name="warm-up: generations of conversations", unit="", rounds=(generations,), goal=SETTLED)
    yield from trends.of_memory(samples, stand.judged)
    yield from trends.of_lag(samples, stand.settings.batch_records)
    yield Figure(name="lag: left", unit="records", rounds=(float(soaked.left),), goal=trends.NOTHING)
    records = soaked.samples[-1].sent - soaked.samples[0].sent
    yield from keyspace.figures(soaked.before, soaked.after, records)


def _conditions(stand: Stand, plan: Plan) -> Conditions:
    return {
        "broker": plan.broker, "agents": plan.agents, "reader": plan.reader, "partitions": PARTITIONS,
        "minutes": plan.seconds / 60, "warm-up s": plan.warm_up, "look every s": plan.period,
        "living conversations": LIVING, "begun": stand.crowd.begun, "load": LOAD,
    }  # fmt: skip
