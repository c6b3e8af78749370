"""What is done to the parts of a stand: signals, halts, and what happens on the lines between them."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM, Signals

from tests.end_to_end.harness import collecting
from tests.faults.judging import applied
from tests.faults.stand import Stand

Act = Callable[[Stand], Awaitable[None]]

PAUSED, STARTED = "agent.paused", "agent.started"


async def nothing(stand: Stand) -> None:
    """Some faults need no lifting."""


def agent_ends(sign: Signals) -> Act:
    async def act(stand: Stand) -> None:
        assert await stand.end_agent(sign) == (-SIGKILL if sign == SIGKILL else 0), stand.tail()

    return act


async def agent_starts(stand: Stand) -> None:
    stand.start_agent()


def agent_ends_without(part: Act) -> Act:
    """It is told to end while it waits for a part that does not answer, and ends in time."""

    async def act(stand: Stand) -> None:
        said = stand.said(PAUSED)
        await part(stand)
        await stand.saying(PAUSED, said)
        await agent_ends(SIGTERM)(stand)

    return act


def both(one: Act, other: Act) -> Act:
    async def act(stand: Stand) -> None:
        await one(stand)
        await other(stand)

    return act


def agent_gets(sign: Signals) -> Act:
    async def act(stand: Stand) -> None:
        stand.agents[0].send_signal(sign)

    return act


async def agent_is_evicted(stand: Stand) -> None:
    """It stands still for longer than its session lasts, while another takes its partitions over."""
    stand.agents[0].send_signal(SIGSTOP)
    stand.start_agent()


async def zombie_wakes(stand: Stand) -> None:
    """When all is done by the other, it goes on where it stood: in the middle of a batch."""
    async with collecting(stand.settings) as collected:
        await applied(stand, collected)
    stand.agents[0].send_signal(SIGCONT)


async def first_agent_leaves(stand: Stand) -> None:
    assert await stand.end_agent(SIGTERM) == 0, stand.tail()


def worker_ends(sign: Signals) -> Act:
    async def act(stand: Stand) -> None:
        await stand.end_worker(sign)

    return act


async def worker_starts(stand: Stand) -> None:
    stand.start_worker()


def worker_gets(sign: Signals) -> Act:
    async def act(stand: Stand) -> None:
        assert stand.worker is not None
        stand.worker.send_signal(sign)

    return act


def worker_answers(answer: bytes | None) -> Act:
    async def act(stand: Stand) -> None:
        stand.to_worker.answer = answer

    return act


def line(name: str, **flags: object) -> Act:
    """Sets flags of one of the relays."""

    async def act(stand: Stand) -> None:
        for flag, value in flags.items():
            setattr(getattr(stand, name), flag, value)

    return act


def line_is_cut(name: str) -> Act:
    async def act(stand: Stand) -> None:
        getattr(stand, name).cut()

    return act


def server_halts(name: str, *, kill: bool) -> Act:
    async def act(stand: Stand) -> None:
        await asyncio.to_thread(getattr(stand, name).halt, kill=kill)

    return act


def server_resumes(name: str) -> Act:
    async def act(stand: Stand) -> None:
        await asyncio.to_thread(getattr(stand, name).resume)

    return act


def server_gets(name: str, sign: Signals) -> Act:
    async def act(stand: Stand) -> None:
        os.kill(getattr(stand, name).pid, sign)

    return act


def redis_forgets(share: float) -> Act:
    """What a failover without waiting for replicas does: the last part of what it took is gone."""

    async def act(stand: Stand) -> None:
        [log] = (stand.folder / "redis" / "appendonlydir").glob("*.incr.aof")
        os.truncate(log, int(log.stat().st_size * (1.0 - share)))

    return act


def redis_is_told(*commands: str) -> Act:
    async def act(stand: Stand) -> None:
        for command in commands:
            await stand.order(*command.split())

    return act
