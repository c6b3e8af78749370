"""What is looked at every few seconds while agents work: memory, lag, and what is finished."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import aiohttp
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from tests.benchmarks.processes import AgentRole, resident

ANSWER_SECONDS = 10.0
POLL_SECONDS = 0.1
_SINGLE = {
    "volteface_agent_finished_total": "finished",
    "volteface_agent_refused_total": "refused",
    "volteface_agent_pauses_total": "pauses",
}
_LAG = "volteface_agent_partition_lag"


class Stuck(RuntimeError):
    """The agents do not finish what they were given."""


class Counted(msgspec.Struct):
    """What agents say of themselves, added up."""

    finished: int = 0
    refused: int = 0
    pauses: int = 0
    lag: dict[str, int] = msgspec.field(default_factory=dict)  # by partition, as their last look found it

    def add(self, metrics: str) -> None:
        """One agent more, by what its /metrics say."""
        for family in text_string_to_metric_families(metrics):
            for name, labels, value, *_ in family.samples:
                if name in _SINGLE:
                    setattr(self, _SINGLE[name], getattr(self, _SINGLE[name]) + int(value))
                elif name == _LAG:
                    self.lag[labels["partition"]] = int(value)


class Sample(msgspec.Struct, frozen=True):
    """One look."""

    seconds: float  # since the first
    begun: int  # conversations
    sent: int
    counted: Counted
    memory: dict[str, float]  # MB by process

    @property
    def behind(self) -> int:
        """Records that were sent and are not finished."""
        return self.sent - self.counted.finished


class Watch:
    """Asks agents and the kernel."""

    def __init__(self, session: aiohttp.ClientSession, agents: Sequence[AgentRole]) -> None:
        self._session, self._agents = session, agents

    async def counted(self) -> Counted:
        """What all agents have done since their start. Raises Stuck where one has ended."""
        found = Counted()
        for agent in self._agents:
            try:
                async with self._session.get(f"{agent.address}/metrics") as answer:
                    found.add(await answer.text())
            except (aiohttp.ClientError, TimeoutError) as error:
                raise Stuck(f"an agent does not answer: {error!r}\n{agent.said()}") from error
        return found

    async def finished(self, count: int, patience: float) -> float:
        """When so many were finished (monotonic seconds). Raises Stuck where nothing goes on for so long."""
        last, moved = -1, time.monotonic()
        while (now := (await self.counted()).finished) < count:
            if now > last:
                last, moved = now, time.monotonic()
            elif time.monotonic() > moved + patience:
                raise Stuck(f"{now} of {count} records are finished\n{self._agents[0].said()}")
            await asyncio.sleep(POLL_SECONDS)
        return time.monotonic()

    async def samples(
        self, every: float, fed: Callable[[], tuple[int, int]], pids: Mapping[str, int], into: list[Sample]
    ) -> None:
        """Look every so many seconds until cancelled; `fed`: conversations begun and records sent so far."""
        start = time.monotonic()
        while True:
            counted = await self.counted()
            elapsed = time.monotonic() - start
            into.append(Sample(elapsed, *fed(), counted, resident(pids)))
            await asyncio.sleep(every - (time.monotonic() - start) % every)


@asynccontextmanager
async def watching(agents: Sequence[AgentRole]) -> AsyncIterator[Watch]:
    """A watch over agents."""
    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        yield Watch(session, agents)
