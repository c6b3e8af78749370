"""Mutated real turns and corrections of every kind, through an agent, a worker, Redis and a broker.

No part ends or fails, each good record is applied once, and each bad one stands in the dead letters once.
What is found can be had again by the lot's name and size: `list(fuzzed(name, size))`.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from aiokafka import AIOKafkaProducer

from stream import kafka, topics
from stream.embedded import EmbeddedRedis
from stream.embedded.broker import Broker
from stream.embedded.process import free_port
from tests.end_to_end.harness import LEFT_OPEN, Collected, collecting
from tests.faults.fuzzing import NAMES, fuzzed
from tests.faults.inquest import inquire
from tests.faults.mutations import Sent
from tests.faults.relay import Relay
from tests.faults.stand import Stand, standing
from tests.faults.verdicts import Judge, Place
from tracker.records import Reason, op_of

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.timeout(7200), pytest.mark.long]

FEW, MANY = 1500, 100_000
LOT = 2500  # records that are judged together, and then forgotten
BATCH_RECORDS = 100
# Nothing is disturbed here: no rebalance and no retry that only a busy machine is to blame for.
PATIENT = {"rebalance_seconds": 15.0, "batch_seconds": 5.0, "reader_seconds": 30.0}
REQUEST_BYTES = 2_000_000
# The stand's run has no clock, so nothing is too late, and no tenant with privacy; and nothing may fail.
REASONS = set(Reason) - {Reason.TOO_LATE, Reason.IN_CLEAR, Reason.FAILED}
COUNTED = ("sent", "applied", "repeated", "refused", "flips")
OPS = {"create", "edit", "delete", "clear", "target", "override", "erase"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Few records on one broker; with --full many, on both."""
    count = MANY if metafunc.config.getoption("full") else FEW
    given = [pytest.param(broker, count, id=f"{broker}-{count}") for broker in ("tansu", "kafka")]
    metafunc.parametrize(("name", "count"), given)


@dataclass
class Bench:
    """A stand, what leaves it, what it is given and what must come of that; and counts of all of it."""

    stand: Stand
    collected: Collected
    producer: AIOKafkaProducer
    judge: Judge
    tally: Counter[str] = field(default_factory=Counter)
    used: set[str] = field(default_factory=set)  # mutations

    async def take(self, name: str, count: int) -> None:
        """Produce a lot of fuzzed records and see what becomes of each."""
        log = await self._produced(name, count)
        verdicts = await self.judge.judge(log)
        await inquire(self.stand, self.collected, name, log, verdicts, self.judge)
        self.used |= {mutation for sent in log.values() for mutation in sent.how}
        self.tally.update(refused.reason for refused in verdicts.refused.values())
        self.tally.update(op_of(record) for record in verdicts.applied.values())
        flips = sum(map(len, self.judge.course.flips.values()))
        self.tally.update(applied=len(verdicts.applied), repeated=len(verdicts.repeated), flips=flips)
        self.tally.update(refused=len(verdicts.refused), sent=len(log))

    async def _produced(self, name: str, count: int) -> dict[Place, Sent]:
        topic = topics.topic(self.stand.settings, "turns")
        sent: list[tuple[Sent, asyncio.Future[Any]]] = []
        for one in fuzzed(name, count):
            rest = {"headers": list(one.headers), "timestamp_ms": one.timestamp}
            sent.append((one, await self.producer.send(topic, one.value, key=one.key, **rest)))
        placed = await asyncio.gather(*(delivery for _, delivery in sent))
        return {(at.partition, at.offset): one for (one, _), at in zip(sent, placed, strict=True)}


@asynccontextmanager
async def benched(broker: Broker, folder: Path, *, idempotence: bool) -> AsyncIterator[Bench]:
    """A stand of its own on a broker that others use: its dead letters would be in the others' way."""
    async with AsyncExitStack() as stack:
        calm = stack.enter_context(EmbeddedRedis())
        prefix, direct = f"test-{uuid4().hex[:12]}", Relay(free_port())
        stand = await stack.enter_async_context(
            standing(broker, direct, calm, folder, prefix, idempotence=idempotence)
        )
        stand.settings = msgspec.structs.replace(stand.settings, **PATIENT, batch_records=BATCH_RECORDS)
        collected = await stack.enter_async_context(collecting(stand.settings))
        producing = kafka.running(AIOKafkaProducer, stand.settings, max_request_size=REQUEST_BYTES)
        judge = Judge(msgspec.structs.replace(stand.settings, redis=calm.url))
        stack.push_async_callback(judge.close)
        stand.start_agent()
        yield Bench(stand, collected, await stack.enter_async_context(producing), judge)


async def test_no_record_is_lost_or_ends_an_agent(
    name: str, count: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    broker: Broker = request.getfixturevalue(f"{name}_broker")
    began = time.monotonic()
    async with benched(broker, tmp_path, idempotence=name == "kafka") as bench:
        for number, start in enumerate(range(0, count, LOT)):
            lot, size = f"fuzz {number}", min(LOT, count - start)
            try:
                await bench.take(lot, size)
            except AssertionError as wrong:
                wrong.add_note(f"in list(fuzzed({lot!r}, {size}))")
                raise
    tally = bench.tally
    shown = {str(word): tally[word] for word in (*COUNTED, *sorted(REASONS))}
    print(f"{name}: {shown} in {time.monotonic() - began:.0f} s")
    assert tally["sent"] == count == tally["applied"] + tally["repeated"] + tally["refused"]
    assert count // 4 < tally["refused"] < count // 2
    assert not [word for word in (*COUNTED, *REASONS, *OPS) if not tally[word]]
    assert bench.used == NAMES
