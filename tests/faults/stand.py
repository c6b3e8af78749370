"""Agents, a worker, Redis and a broker as processes, the lines between them, and an undisturbed twin."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGTERM, Signals

import msgspec
from redis.asyncio import Redis

from stream.embedded import EmbeddedRedis
from stream.embedded.broker import Broker
from stream.embedded.process import free_port
from stream.embedded.server import Server
from stream.settings import Settings
from tests.end_to_end.harness import ROOT, agent_process, ended, environment, settings_of
from tests.faults.cluster import Cluster
from tests.faults.relay import Relay
from tests.faults.undisturbed import Undisturbed

RUN = "faults"  # not live: no clock stands in what is compared
NOTICE_SECONDS = 60.0  # as long as a machine may need that is busy with something else
STOP_SECONDS = 10.0
WORKER = """\
import sys
from stream import roles, settings
sys.exit(roles.worker(settings.load(), "127.0.0.1", int(sys.argv[1])))
"""


@dataclass
class Stand:
    """A run that is disturbed. `settings` reach every part directly, `agents_settings` through the relays."""

    settings: Settings
    broker: Broker | Cluster
    redis: EmbeddedRedis
    calm: EmbeddedRedis  # the twin's
    to_broker: Relay
    to_redis: Relay
    to_worker: Relay
    twin: Undisturbed
    folder: Path
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)
    worker: subprocess.Popen[bytes] | None = None
    committed: dict[int, int] = field(default_factory=dict)  # by partition, when last looked at
    sound: bool = True  # whether nothing has failed on it yet
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def agents_settings(self) -> Settings:
        """What agents are started with."""
        return msgspec.structs.replace(
            self.settings,
            broker=f"kafka://127.0.0.1:{self.to_broker.port}" if self.to_broker.port else self.broker.url,
            redis=f"redis://127.0.0.1:{self.to_redis.port}/0",
            worker=f"http://127.0.0.1:{self.to_worker.port}",
        )

    @property
    def log(self) -> Path:
        """What all agents said."""
        return self.folder / "agent.log"

    def start_agent(self) -> subprocess.Popen[bytes]:
        """One agent more."""
        agent = self._stack.enter_context(agent_process(self.agents_settings, self.log))
        self.agents.append(agent)
        return agent

    async def end_agent(self, sign: Signals, at: int = 0) -> int:
        """One agent less; its exit status."""
        agent = self.agents.pop(at)
        agent.send_signal(sign)
        return await ended(agent, STOP_SECONDS if sign != SIGKILL else NOTICE_SECONDS)

    async def one_agent_stays(self) -> None:
        """All agents leave but the last that came."""
        while len(self.agents) > 1:
            assert await self.end_agent(SIGTERM) == 0, self.tail()

    def start_worker(self) -> None:
        """The worker, always on the same port."""
        command = [sys.executable, "-c", WORKER, str(self.to_worker.target)]
        with (self.folder / "worker.log").open("ab") as log:
            self.worker = subprocess.Popen(
                command, cwd=ROOT, env=environment(self.settings), stdout=log, stderr=log
            )

    async def end_worker(self, sign: Signals) -> int:
        """The worker's exit status."""
        worker, self.worker = self.worker, None
        assert worker is not None
        worker.send_signal(sign)
        return await ended(worker, NOTICE_SECONDS)

    async def order(self, *command: str) -> None:
        """Tell Redis itself something."""
        async with Redis.from_url(self.redis.url, protocol=2, socket_timeout=NOTICE_SECONDS) as client:
            await client.execute_command(*command)

    def alive(self) -> bool:
        """Fails where an agent has ended by itself."""
        assert all(agent.poll() is None for agent in self.agents), f"an agent ended: {self.tail()}"
        return True

    def tail(self) -> str:
        """The end of what the agents said."""
        return self.log.read_text(errors="replace")[-3000:]

    def said(self, event: str) -> int:
        """How often the agents have logged an event."""
        return self.log.read_bytes().count(event.encode())

    async def saying(self, event: str, before: int) -> None:
        """Wait until the agents have logged an event more often than before."""
        async with asyncio.timeout(NOTICE_SECONDS):
            while self.said(event) <= before:  # noqa: ASYNC110 - a file must be asked
                await asyncio.sleep(0.02)

    async def close(self) -> None:
        """End agents and worker. A server that a failed test left standing still goes on."""
        self._stack.close()
        for server in (self.broker, self.redis):
            if isinstance(server, Server) and server.running():
                os.kill(server.pid, SIGCONT)
        if self.worker is not None:
            await self.end_worker(SIGKILL)


@contextlib.asynccontextmanager
async def standing(
    broker: Broker | Cluster,
    to_broker: Relay,
    calm: EmbeddedRedis,
    folder: Path,
    prefix: str,
    *,
    idempotence: bool,
) -> AsyncIterator[Stand]:
    """A stand with a worker and without an agent, on a broker that outlives it; `folder` is there."""
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(EmbeddedRedis(folder / "redis"))
        to_redis = await stack.enter_async_context(Relay(redis.port).running())
        to_worker = await stack.enter_async_context(Relay(free_port()).running())
        settings = msgspec.structs.replace(
            settings_of(broker.url, redis.url, prefix, idempotence=idempotence, run=RUN),
            batch_records=10,  # small batches, so that there is a middle to be disturbed in
            batch_seconds=0.5,
            reader_seconds=3.0,
        )
        twin = Undisturbed(msgspec.structs.replace(settings, redis=calm.url))
        stack.push_async_callback(twin.close)
        stand = Stand(settings, broker, redis, calm, to_broker, to_redis, to_worker, twin, folder)
        stack.push_async_callback(stand.close)
        stand.start_worker()
        yield stand
