"""Records a second of our agent, whose reader is the rule, beside a bare Faust agent that only copies.

Both run as processes with the same client settings, on records that were produced beforehand. An agent
starts on a few records, is halted (SIGSTOP) once they came out again, and the topic is filled. The clock runs
from SIGCONT to the last record in any of its output topics: start-up and joining the group are no part.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import msgspec

from stream import topics
from stream.embedded import EmbeddedRedis
from stream.settings import Settings
from tests.benchmarks import brokers, chat
from tests.benchmarks.measuring import Conditions, Figure, Goal, Result, Scale, milliseconds, ratio
from tests.end_to_end.harness import environment

ROOT = Path(__file__).parents[2]
CONVERSATIONS = 200
PARTITIONS = 4
SESSION_SECONDS = 12.0  # a halted agent must not lose its membership; Tansu lets it wait for half of it
PATIENCE_SECONDS = 60.0
AIM = Goal(least=0.5)  # 0.9 later
OUTPUTS = ("journal", "states", "stances", "flips", "dead-letters")

Records = Sequence[tuple[bytes, bytes]]


class Subject(msgspec.Struct, frozen=True):
    """An agent to be measured: its command, and the topics before and behind it, the deciding one first."""

    command: tuple[str, ...]
    environment: dict[str, str]
    source: str
    sinks: tuple[str, ...]


class Spent(msgspec.Struct, frozen=True):
    """What one round took."""

    seconds: float
    cpu: float


def run(scale: Scale) -> Result:
    """Both agents in turn, on each broker."""
    count, rounds = scale.of(20_000, 4_000), scale.of(5, 3)
    warm, records = _records(count)
    figures: list[Figure] = []
    with EmbeddedRedis() as redis, brokers.started() as found:
        for name, broker in found.items():
            settings = _settings(broker.url, redis.url, idempotence=name == "kafka")
            figures += asyncio.run(_compared(name, settings, warm, records, rounds))
    conditions: Conditions = {
        "records": count, "conversations": CONVERSATIONS, "partitions": PARTITIONS, "rounds": rounds,
        "reader": "rule", "mean_bytes": round(sum(len(value) for _, value in records) / count),
    }  # fmt: skip
    return Result(name="agent_throughput", conditions=conditions, figures=tuple(figures))


def _records(count: int) -> tuple[Records, Records]:
    """What an agent starts on, each conversation's target, and what is measured: turns, room by room."""
    rooms = [f"room-{number}" for number in range(CONVERSATIONS)]
    warm = [chat.keyed(chat.declared(room)) for room in rooms]
    turns = [chat.turn(rooms[at % CONVERSATIONS], 1 + at // CONVERSATIONS) for at in range(count)]
    return warm, [chat.keyed(turn) for turn in turns]


def _settings(broker: str, redis: str, *, idempotence: bool) -> Settings:
    return Settings(
        broker=broker, redis=redis, reader="rule", partitions=PARTITIONS, rebalance_seconds=SESSION_SECONDS,
        batch_seconds=SESSION_SECONDS * 0.45, broker_idempotence=idempotence, log_level="warning",
    )  # fmt: skip


async def _compared(
    name: str, settings: Settings, warm: Records, records: Records, rounds: int
) -> list[Figure]:
    ours: list[Spent] = []
    bare: list[Spent] = []
    for number in range(rounds):
        mine = msgspec.structs.replace(settings, topic_prefix=f"bench-{uuid4().hex[:8]}")
        await topics.ensure(mine)
        subjects = [(ours, _ours(mine)), (bare, await _bare(mine))]
        for into, subject in subjects if number % 2 else reversed(subjects):
            into.append(await _spent(mine, subject, warm, records))
    return [*_figures(name, ours, bare, len(records))]


def _figures(name: str, ours: Sequence[Spent], bare: Sequence[Spent], count: int) -> Iterator[Figure]:
    for who, spent in (("our agent", ours), ("bare copy", bare)):
        rates = tuple(count / one.seconds for one in spent)
        yield Figure(name=f"{name}: {who}", unit="records/s", rounds=rates)
        cpu = [one.cpu for one in spent]
        yield milliseconds(f"{name}: {who}, CPU of its process a record", cpu, share=count)
    # Seconds turned over: a ratio of rates.
    above, below = [one.seconds for one in bare], [one.seconds for one in ours]
    yield ratio(f"{name}: records/s, ours to bare", above, below, goal=AIM)


def _ours(settings: Settings) -> Subject:
    names = {name: topics.topic(settings, name) for name in ("turns", *OUTPUTS)}
    command = (sys.executable, "-m", "stream.cli.main", "agent")
    return Subject(command, environment(settings), names["turns"], tuple(names[name] for name in OUTPUTS))


async def _bare(settings: Settings) -> Subject:
    source, sink = f"{settings.topic_prefix}.source", f"{settings.topic_prefix}.sink"
    bootstrap = settings.bootstrap_servers[0]
    await brokers.make(bootstrap, (source, sink), settings.partitions)
    module = (sys.executable, "-m", "tests.benchmarks.copying")
    given = (bootstrap, source, source, sink, str(settings.partitions), str(settings.rebalance_seconds))
    return Subject((*module, *given), environment(settings), source, (sink,))


async def _spent(settings: Settings, subject: Subject, warm: Records, records: Records) -> Spent:
    """From the first record the agent may take to the last it led to."""
    bootstrap = settings.bootstrap_servers[0]
    await brokers.produce(bootstrap, subject.source, warm)
    deciding = subject.sinks[0]
    async with brokers.watching(bootstrap, subject.sinks, settings.partitions) as arrivals:
        with _running(subject) as process:
            await arrivals.reached(deciding, len(warm), PATIENCE_SECONDS)
            os.kill(process.pid, signal.SIGSTOP)
            await brokers.produce(bootstrap, subject.source, records)
            start, used = time.monotonic(), _cpu(process.pid)
            os.kill(process.pid, signal.SIGCONT)
            end = await arrivals.reached(deciding, len(warm) + len(records), PATIENCE_SECONDS)
            return Spent(end - start, _cpu(process.pid) - used)


def _cpu(pid: int) -> float:
    """Seconds that a process has spent on a core, in itself and in the kernel (proc(5): utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _running(subject: Subject) -> Iterator[subprocess.Popen[bytes]]:
    """The agent's process; what it wrote is shown where the measurement failed."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            subject.command, cwd=ROOT, env=subject.environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            yield process
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace")[-4000:])
            raise
        finally:
            process.kill()
            process.wait()
