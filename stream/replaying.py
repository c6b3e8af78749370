"""Replay: a file's records into a run's turns topic, at a chosen rate, from where it was left."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

import structlog
from aiokafka.errors import KafkaError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from stream.lag import Lag
from stream.outbox import of_record
from stream.platforms import Line
from stream.questions import Questions
from stream.sender import Sender, SenderUnavailable
from stream.store.port import Message
from tracker import keys
from tracker.records import Record, Refused

log = structlog.get_logger(__name__)

CHUNK_RECORDS = 200
DRAIN_POLL_SECONDS = 0.25
RETRY_SECONDS = 1.0
CALL_TIMEOUT_SECONDS = 10.0

Report = Callable[[int, Refused], None]
Folded = Callable[[], Awaitable[None]]


def default_run(path: Path) -> str:
    """A run's name that the same file gets again, so that a replay goes on where it was left."""
    return f"replay-{fingerprint(path)[:10]}"


def fingerprint(path: Path) -> str:
    """Which file this is: a digest of all of it."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class Progress:
    """How many lines of a file a run has been given; kept in Redis."""

    def __init__(self, redis: Redis, prefix: str, run: str, file: str) -> None:
        self._redis, self._key = redis, f"{prefix}:{keys.escape(run)}:replay:{file}"

    async def lines(self) -> int:
        """The number of the last line that was delivered."""
        async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
            return int(await self._redis.get(self._key) or 0)

    async def reached(self, line: int) -> None:
        """Lines up to this one are delivered."""
        async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
            await self._redis.set(self._key, line)


async def produce(
    lines: Iterable[Line],
    sender: Sender,
    progress: Progress,
    refused: Report,
    *,
    rate: float = 0.0,
    folded: Folded | None = None,
) -> int:
    """Send every line after the progress, at most `rate` records a second; returns how many.

    With `folded`, which returns once all that was sent is, a found target comes before the turns it is for.
    """
    start = await progress.lines()
    if start:
        log.info("replay.resumed", line=start)
    pace, questions = Pace(rate), Questions()
    for chunk in _chunks(_after(start, lines, questions)):
        for line in chunk:
            if isinstance(line.result, Refused):
                refused(line.number, line.result)
        accepted = [line.result for line in chunk if not isinstance(line.result, Refused)]
        for part in pace.parts(accepted):
            for at, piece in enumerate(questions.cut(part) if folded else [part]):
                if at and folded:
                    await folded()
                await _send(sender, [of_record(record) for record in piece])
            await pace.keep(len(part))
        await _keep(progress, chunk[-1].number)
    return pace.sent


def _after(start: int, lines: Iterable[Line], questions: Questions) -> Iterator[Line]:
    for line in lines:
        if line.number > start:
            yield line
        elif not isinstance(line.result, Refused):
            questions.sent(line.result)


class Pace:
    """At most `rate` records a second, in parts of about a quarter second; 0 is unbounded."""

    def __init__(self, rate: float) -> None:
        self._rate, self._began, self.sent = rate, time.monotonic(), 0

    def parts(self, records: list[Record]) -> Iterator[list[Record]]:
        """The records, cut into what may be sent at once."""
        size = max(1, int(self._rate / 4)) if self._rate else len(records) or 1
        return (records[at : at + size] for at in range(0, len(records), size))

    async def keep(self, count: int) -> None:
        """Count what was sent, and wait until the next part is due."""
        self.sent += count
        if self._rate:
            await asyncio.sleep(max(0.0, self._began + self.sent / self._rate - time.monotonic()))


async def drained(lag: Lag) -> None:
    """Wait until the run's agents have finished all that stands in its turns topic."""
    while await _behind(lag):  # noqa: ASYNC110 - the broker tells nobody, it must be asked
        await asyncio.sleep(DRAIN_POLL_SECONDS)


async def _behind(lag: Lag) -> bool:
    """Whether anything is left; a broker that cannot say so now is asked again."""
    try:
        async with asyncio.timeout(CALL_TIMEOUT_SECONDS):
            return bool(await lag.records())
    except (KafkaError, TimeoutError, OSError) as error:
        log.warning("replay.paused", error=repr(error))
        return True


def _chunks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Chunks of some size that never end within a line's records: progress counts whole lines."""
    chunk: list[Line] = []
    for _, of_line in groupby(lines, key=lambda line: line.number):
        chunk += of_line
        if len(chunk) >= CHUNK_RECORDS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


async def _keep(progress: Progress, line: int) -> None:
    """Keep the progress, however long Redis is away."""
    while True:
        try:
            await progress.reached(line)
            return
        except (RedisError, TimeoutError) as error:
            log.warning("replay.paused", error=str(error))
            await asyncio.sleep(RETRY_SECONDS)


async def _send(sender: Sender, messages: list[Message]) -> None:
    """Send until delivered, however long the broker is away; an applied record changes nothing twice."""
    while messages:
        try:
            await sender.send(messages)
            return
        except SenderUnavailable as error:
            log.warning("replay.paused", error=str(error))
            await asyncio.sleep(RETRY_SECONDS)
