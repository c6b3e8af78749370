"""Calls to an OpenAI-compatible server: paced, retried with jitter, bounded, counted, behind a circuit.

What is wrong with the server or with settings is ReaderUnavailable, since it says nothing about a turn; only
what the server says of one call's content is `Refused`, and who asked decides what that means. The circuit
counts whole questions, with the harmless call that one of them may take: only an absence counts against it.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import Any, TypeVar

import msgspec
import structlog

from models.circuit import Circuit, CircuitPolicy
from models.guard import Guard
from models.reader import ReaderUnavailable
from models.remote import wire
from models.remote.background import Background
from models.remote.failures import Away, Breakage, Broken, Misconfigured, failure, meaning
from models.remote.failures import ended as how_ended
from models.remote.pace import Pace
from models.remote.spent import Account, Call, Spent
from models.worker.channel import Channel, Faulty, Reply

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

COMPLETIONS = "chat/completions"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class RemoteConfig:
    """Where the server is and how patiently it is asked. Times are seconds."""

    url: str  # up to /v1
    model: str  # as the server calls it, a LoRA adapter's name included
    key: str | None = None
    parallel: int = 8  # calls under way at once, each on a connection of its own
    per_minute: int | None = None  # calls, retries included; None: as many as come
    seconds: float = 60.0  # a call, with its retries and their waits, but for what the pace makes it wait
    connect_seconds: float = 5.0
    attempts: int = 4
    backoff: float = 0.5  # the first wait is at most this, each later one at most twice the one before
    backoff_cap: float = 8.0
    config_pause: float = 30.0  # before asking again where only a setting can help
    longest_quiet: float = 120.0  # no server's word is taken for longer: a quota may be raised meanwhile
    batch_seconds: float = 240.0  # all calls of one batch; a worker ends itself over one of 300
    answer_bytes: int = 2 * 1024 * 1024
    failures: int = 3  # questions in a row, each with all its attempts, that open the circuit
    open_for: float = 15.0

    def __repr__(self) -> str:
        """Without the key."""
        return f"RemoteConfig(model={self.model!r})"


class RemoteClient:
    """Completes chats. `each` is for callers that cannot await; `complete` for what runs inside it."""

    def __init__(self, config: RemoteConfig) -> None:
        self.config = config
        self._channel = Channel(
            config.url,
            connections=config.parallel,
            connect_timeout=config.connect_seconds,
            answer_bytes=config.answer_bytes,
            headers={"Authorization": f"Bearer {config.key}"} if config.key else {},
        )
        self._slots = asyncio.Semaphore(config.parallel)
        self._pace = Pace(config.per_minute)
        self._account = Account(config.model)
        self._guard = Guard(
            CircuitPolicy(failures=config.failures, open_for=config.open_for), meaning, on_move=self._moved
        )
        self._background = Background()

    @property
    def spent(self) -> Spent:
        """Calls and tokens so far."""
        return self._account.spent

    @property
    def circuit(self) -> Circuit:
        """Whether questions go through now."""
        return self._guard.breaker.state

    def each(
        self, asked: Sequence[Asked], answer: Callable[[Asked], Coroutine[Any, Any, Answer]]
    ) -> list[Answer | Exception]:
        """An answer, or the error it ended with, for each. ReaderUnavailable ends them all, and is raised."""
        return self._background.run(_each(asked, answer), self.config.batch_seconds)

    @asynccontextmanager
    async def question(self) -> AsyncIterator[None]:
        """One question, with what calls it takes: while the server is away, only a trial. Raises CircuitOpen.

        Those that come with a trial wait for how it ends, else a batch would never get one through.
        """
        await self._guard.settled()
        with self._guard.attempt():
            yield

    async def complete(self, body: wire.Body) -> wire.Completion:
        """The server's answer. Raises Refused and ReaderUnavailable."""
        encoded = msgspec.json.encode({"model": self.config.model, **body})
        async with self._slots:
            deadline = monotonic() + self.config.seconds
            attempt = 0
            while True:
                attempt += 1
                # The pace takes nothing of a call's time: a slow one would end every batch before it is read.
                deadline += await self._pace.turn(self.config.seconds)
                try:
                    return await self._attempt(encoded, deadline)
                except Faulty as fault:
                    await self._pause(attempt, fault, deadline)

    def close(self) -> None:
        """Give connections and thread back; twice is once."""
        with suppress(ReaderUnavailable):  # closed already, or hanging: its thread is a daemon
            self._background.run(self._channel.close(), self.config.connect_seconds)
        self._background.close()

    async def _pause(self, attempt: int, fault: Faulty, deadline: float) -> None:
        """Waits before another attempt. Raises where none is left."""
        most = min(self.config.backoff * 2 ** (attempt - 1), self.config.backoff_cap)
        wait = (fault.asked_wait or 0.0) + random.uniform(0, most)
        if fault.asked_wait:
            self._pace.hold(fault.asked_wait)
        if not fault.again or attempt >= self.config.attempts or monotonic() + wait >= deadline:
            _log.warning("remote.unavailable", attempts=attempt, fault=str(fault))
            kind = Broken if isinstance(fault, Breakage) else Away
            raise kind(f"the remote server: {fault}", fault.retry_after) from fault
        await asyncio.sleep(wait)

    async def _attempt(self, body: bytes, deadline: float) -> wire.Completion:
        ended = Call.CANCELLED
        try:
            reply = await self._channel.post(COMPLETIONS, body, within=max(deadline - monotonic(), 0.001))
            status = (reply.status == 200 and wire.excuse(reply.body)) or reply.status
            if status != 200:
                ended = how_ended(status)
                raise self._refused(replace(reply, status=status))
            answer, ended = self._answer(reply.body), Call.ANSWERED
            return answer
        except Faulty:
            if ended is Call.CANCELLED:
                ended = Call.TIMED_OUT if monotonic() >= deadline else Call.FAILED
            raise
        finally:
            self._account.ended(ended)

    def _answer(self, body: bytes) -> wire.Completion:
        try:
            answer = wire.completion(body)
        except (ValueError, RecursionError) as error:
            raise Breakage(f"no completion: {type(error).__name__}", again=True) from None
        self._account.add(wire.usage(answer))
        return answer

    def _refused(self, reply: Reply) -> Exception:
        reason = self._reason(reply.body)
        wait = None if reply.retry_after is None else min(reply.retry_after, self.config.longest_quiet)
        error = failure(reply.status, reason, retry_after=wait, pause=self.config.config_pause)
        if isinstance(error, Misconfigured):
            _log.warning("remote.misconfigured", status=reply.status, reason=reason)
        return error

    def _reason(self, body: bytes) -> str:
        """The server's word, but where it is the key that it refuses."""
        reason = wire.refusal(body)
        return "" if self.config.key and self.config.key in reason else reason

    def _moved(self, before: Circuit, after: Circuit) -> None:
        _log.info("remote.circuit", before=before.value, after=after.value)
        if after is Circuit.OPEN:
            self._account.opened()


def unwrapped(answers: Sequence[Answer | Exception]) -> list[Answer]:
    """The answers. Raises the first error among them."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [answer for answer in answers if not isinstance(answer, Exception)]


async def _each(
    asked: Sequence[Asked], answer: Callable[[Asked], Coroutine[Any, Any, Answer]]
) -> list[Answer | Exception]:
    tasks = [asyncio.ensure_future(_kept(partial(answer, one))) for one in asked]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _kept(answer: Callable[[], Awaitable[Answer]]) -> Answer | Exception:
    """An absence ends all; what is wrong with one call alone leaves the others theirs."""
    try:
        return await answer()
    except ReaderUnavailable:
        raise
    except Exception as error:
        return error
