"""The watchdog: looks at the partitions every few seconds, and ends an agent that has stopped moving.

It lives in the agent's own event loop, and so sees all but that loop itself: whoever blocks it is seen from
outside, by a `/live` that does not answer (stream/probes.py).
"""

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping

import structlog

from models.tracebacks import frames
from stream.kafka import REQUEST_TIMEOUT_SECONDS
from stream.offsets import Partition
from stream.positions import ANSWER_SECONDS
from stream.progress import Judgement, Limits, Look, Progress, Verdict
from stream.settings import Settings
from stream.vitals import Pause, Vitals

log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0
ROUTINE_SECONDS = 5.0  # above Faust's interval of commits, 2.8 s
CALLS = 3  # of a wave that began when a batch's time was nearly over: observe, explain, propose
OUTAGE_SECONDS = 300.0  # far above all time limits of an attempt together: what takes longer hangs
END_SECONDS = 5.0

BROKER = "Broker"


def limits(settings: Settings) -> Limits:
    """What an agent of these settings may take."""
    return Limits(
        stall=settings.stall_seconds,
        routine=ROUTINE_SECONDS,
        batch=settings.batch_seconds
        + CALLS * settings.reader_seconds
        + REQUEST_TIMEOUT_SECONDS,  # to deliver it
        join=2 * settings.rebalance_seconds,
        outage=OUTAGE_SECONDS,
    )


class Watchdog:
    """Knows how each partition is; `run` ends when the agent should."""

    def __init__(
        self,
        within: Limits,
        look: Callable[[], Awaitable[Look]],
        vitals: Vitals,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stall, self._progress = within.stall, Progress(within)
        self._look, self._clock, self.vitals = look, clock, vitals
        self._every = min(LOOK_SECONDS, within.stall / 4) if within.stall else LOOK_SECONDS
        self._now, self._read = 0.0, clock()
        self._told: set[Partition] = set()
        self._away: float | None = None
        self.judged: Mapping[Partition, Judgement] | None = None  # None before the first look

    async def run(self) -> str:
        """Look until a partition has been stalled for too long; says which."""
        while True:
            try:
                await self.look()
            except Exception as error:  # a defect of the watchdog's must not end the agent
                log.error("watch.failed", error=type(error).__name__, frames=frames(error))
                self.judged = None  # what was seen last says nothing of now: not ready
            if over := [name for name, judged in (self.judged or {}).items() if judged.over]:
                numbers = ", ".join(str(number) for _, number in sorted(over))
                return f"partition {numbers} has not moved for twice as long as stall_seconds allows"
            await asyncio.sleep(self._every)

    async def look(self) -> None:
        """Look once, and tell what has changed."""
        found = await self._look()
        now = self._passed()
        self.judged = self._progress.look(now, found)
        silent = [facts for facts in found.facts.values() if facts.answers and facts.end is None]
        self._away = None if not silent else self._clock() if self._away is None else self._away
        self._tell()

    def _passed(self) -> float:
        """The time, without hours in which this process was stopped: nobody could have moved then."""
        read = self._clock()
        self._now += min(read - self._read, 2 * (self._every + ANSWER_SECONDS))
        self._read = read
        return self._now

    def _tell(self) -> None:
        assert self.judged is not None
        stalled = {name for name, judged in self.judged.items() if judged.verdict is Verdict.STALLED}
        for name in sorted(stalled - self._told):
            judged = self.judged[name]
            log.error(
                "partition.stalled",
                partition=name[1],
                due=judged.due,
                lag=judged.lag,
                seconds=round(judged.seconds, 1),
            )
        for name in sorted(self._told - stalled):
            if name in self.judged:  # else it moves elsewhere
                log.warning("partition.moves", partition=name[1], lag=self.judged[name].lag)
        self._told = stalled

    @property
    def paused(self) -> Pause | None:
        """The part that is away, if one is; else what some partitions alone wait for."""
        away = None if self._away is None else Pause(BROKER, self._away)
        return self.vitals.paused or away or self.vitals.held

    def since(self, paused: Pause) -> float:
        """How many seconds a part has been away."""
        return self._clock() - paused.since

    @property
    def ill(self) -> str | None:
        """Why the agent is not ready, if it is not."""
        if self.judged is None or not self.vitals.joined:
            return "starting"
        if self._told:
            return "stalled"
        return "paused" if self.paused else None


def end_soon() -> None:
    """End the process with status 1 within seconds, whatever hangs in it and ignores that it is cancelled."""
    timer = threading.Timer(END_SECONDS, os._exit, (1,))
    timer.daemon = True
    timer.start()
