"""The faults as data: how each is done to a stand, how it is lifted, and how one sees that it bit."""

import asyncio
import random
from dataclasses import dataclass
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Literal

from tests.faults.acts import (
    PAUSED,
    STARTED,
    Act,
    agent_ends,
    agent_ends_without,
    agent_gets,
    agent_is_evicted,
    agent_starts,
    both,
    first_agent_leaves,
    line,
    line_is_cut,
    nothing,
    redis_forgets,
    redis_is_told,
    server_gets,
    server_halts,
    server_resumes,
    worker_answers,
    worker_ends,
    worker_gets,
    worker_starts,
    zombie_wakes,
)
from tests.faults.stand import Stand

Brokers = tuple[Literal["tansu", "kafka"], ...]

SECONDS = (0.3, 1.5)  # how long a fault lasts that the agents do not speak of
SLOW_SECONDS = 0.05
SERVER_ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"
GARBAGE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\nConnection: close\r\n\r\n[[[["
)
TOO_FEW = b'HTTP/1.1 200 OK\r\nContent-Length: 19\r\nConnection: close\r\n\r\n{"observations":[]}'


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong with a part, and later is right again."""

    name: str
    inject: Act
    lift: Act
    bites: str | None = None  # what an agent then says; None: it lasts for some seconds
    brokers: Brokers = ("tansu", "kafka")
    usual: Brokers = ("tansu",)  # where it is tried without --full
    of_broker: bool = False  # nothing can be produced meanwhile

    async def hold(self, stand: Stand, said: int, chance: random.Random) -> None:
        """Wait until the fault has bitten; `said` is how often the agents had spoken of such before."""
        if self.bites is None:
            await asyncio.sleep(chance.uniform(*SECONDS))
        else:
            await stand.saying(self.bites, said)


AGENT = (
    Fault("agent killed", agent_ends(SIGKILL), agent_starts, usual=("kafka",)),
    Fault("agent told to end", agent_ends(SIGTERM), agent_starts),
    Fault(
        "agent told to end while the worker never answers",
        agent_ends_without(line("to_worker", silent=True)),
        both(line("to_worker", silent=False), agent_starts),
    ),
    Fault(
        "agent told to end while redis never answers",
        agent_ends_without(line("to_redis", silent=True)),
        both(line("to_redis", silent=False), agent_starts),
        usual=(),
    ),
    Fault(
        "agent told to end while the broker stands still",
        both(server_gets("broker", SIGSTOP), agent_ends(SIGTERM)),
        both(server_gets("broker", SIGCONT), agent_starts),
        of_broker=True,
    ),
    Fault("agent stands still", agent_gets(SIGSTOP), agent_gets(SIGCONT)),
    Fault("agent evicted", agent_is_evicted, zombie_wakes, bites=STARTED, usual=("kafka",)),
    Fault("agents come and go", agent_starts, first_agent_leaves, bites=STARTED, usual=("kafka",)),
)
WORKER = (
    Fault("worker killed", worker_ends(SIGKILL), worker_starts, bites=PAUSED),
    Fault("worker told to end", worker_ends(SIGTERM), worker_starts, usual=()),
    Fault("worker stands still", worker_gets(SIGSTOP), worker_gets(SIGCONT)),
    Fault("worker is slow", line("to_worker", delay=SLOW_SECONDS), line("to_worker", delay=0.0)),
    Fault(
        "worker never answers", line("to_worker", silent=True), line("to_worker", silent=False), bites=PAUSED
    ),
    Fault("worker fails", worker_answers(SERVER_ERROR), worker_answers(None), bites=PAUSED),
    Fault("worker answers garbage", worker_answers(GARBAGE), worker_answers(None), bites=PAUSED, usual=()),
    Fault("worker answers too few", worker_answers(TOO_FEW), worker_answers(None), bites=PAUSED),
    Fault("line to the worker is cut", line_is_cut("to_worker"), nothing),
)
REDIS = (
    Fault("redis killed", server_halts("redis", kill=True), server_resumes("redis"), bites=PAUSED),
    Fault(
        "redis told to end",
        server_halts("redis", kill=False),
        server_resumes("redis"),
        bites=PAUSED,
        usual=(),
    ),
    Fault(
        "redis loses its last writes",
        both(server_halts("redis", kill=True), redis_forgets(0.1)),
        server_resumes("redis"),
        bites=PAUSED,
        usual=("tansu", "kafka"),
    ),
    Fault("redis stands still", server_gets("redis", SIGSTOP), server_gets("redis", SIGCONT), bites=PAUSED),
    Fault(
        "redis is full",
        redis_is_told("CONFIG SET maxmemory 1"),
        redis_is_told("CONFIG SET maxmemory 0"),
        bites=PAUSED,
    ),
    Fault(
        "redis is a replica",
        redis_is_told("REPLICAOF 127.0.0.1 1"),
        redis_is_told("REPLICAOF NO ONE"),
        bites=PAUSED,
    ),
    Fault("redis forgets its scripts", redis_is_told("SCRIPT FLUSH"), nothing),
    Fault("line to redis is cut", line_is_cut("to_redis"), nothing),
    Fault("line to redis is slow", line("to_redis", delay=SLOW_SECONDS), line("to_redis", delay=0.0)),
    Fault(
        "line to redis is dead", line("to_redis", silent=True), line("to_redis", silent=False), bites=PAUSED
    ),
)
BROKER = (
    Fault(
        "broker killed",
        server_halts("broker", kill=True),
        server_resumes("broker"),
        brokers=("kafka",),
        usual=("kafka",),
        of_broker=True,
    ),
    Fault(
        "broker told to end",
        server_halts("broker", kill=False),
        server_resumes("broker"),
        brokers=("kafka",),
        usual=(),
        of_broker=True,
    ),
    Fault(
        "broker stands still", server_gets("broker", SIGSTOP), server_gets("broker", SIGCONT), of_broker=True
    ),
    Fault(
        "line to the broker is cut", line_is_cut("to_broker"), nothing, brokers=("kafka",), usual=("kafka",)
    ),
    Fault(
        "line to the broker is slow",
        line("to_broker", delay=SLOW_SECONDS),
        line("to_broker", delay=0.0),
        brokers=("kafka",),
        usual=("kafka",),
    ),
    Fault(
        "line to the broker is dead",
        line("to_broker", silent=True),
        line("to_broker", silent=False),
        brokers=("kafka",),
        usual=(),
    ),
)
FAULTS = (*AGENT, *WORKER, *REDIS, *BROKER)
