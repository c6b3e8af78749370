"""Calls to an OpenAI-compatible server: paced, retried with jitter, bounded, counted.

What is wrong with the server or with settings is ReaderUnavailable, since it says nothing about a turn; only
what the server says of one call's content is `Refused`, and who asked decides what that means.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, TypeVar

import msgspec
import structlog

from models.reader import ReaderUnavailable
from models.remote import wire
from models.remote.background import Background
from models.remote.pace import Pace
from models.worker.channel import Channel, Faulty, Reply

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

COMPLETIONS = "chat/completions"
_AGAIN = frozenset({408, 425, 429})  # and every 5xx
# What may lie in this one call's content; 403 is said of moderated content, too, and by firewalls before it.
_OF_THE_CALL = frozenset({400, 403, 413, 422})
_BREAKS = 500  # other 5xx say that it is away or overloaded, whatever it is asked
_REMEDIES = {
    401: "set VOLTEFACE_REMOTE_KEY to a key that the server takes",
    402: "the account behind VOLTEFACE_REMOTE_KEY has to be paid up",
    403: "set VOLTEFACE_REMOTE_KEY to a key that may use VOLTEFACE_REMOTE_MODEL",
    404: "set VOLTEFACE_REMOTE_MODEL to a model it serves, and VOLTEFACE_REMOTE_URL up to /v1",
}
_ANOTHER = "set VOLTEFACE_REMOTE_URL to an OpenAI-compatible server's address, up to /v1"
_SPENT_EVERY = 60.0  # seconds between two log lines about what was spent

_log = structlog.get_logger(__name__)


def remedy_for(status: int) -> str:
    """What a person can do about calls that all end with this status."""
    return _REMEDIES.get(status, _ANOTHER)


class Refused(Exception):
    """The server takes this call's content, or one of its parameters, not at all."""

    def __init__(self, status: int, reason: str) -> None:
        self.status, self.reason = status, reason
        super().__init__(f"status {status}{f', {reason}' if reason else ''}")


class Broken(ReaderUnavailable):
    """The server broke on this call at every attempt: it is ill, or this one call is too much for it."""


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

    def __repr__(self) -> str:
        """Without the key."""
        return f"RemoteConfig(model={self.model!r})"


class Spent(msgspec.Struct, frozen=True):
    """What was spent since the start."""

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of the prompt's
    completion_tokens: int = 0

    def plus(self, usage: wire.Usage | None) -> "Spent":
        """With one more call."""
        usage = usage or wire.Usage()
        details = usage.prompt_tokens_details
        return Spent(
            self.calls + 1,
            self.prompt_tokens + usage.prompt_tokens,
            self.cached_tokens + ((details and details.cached_tokens) or 0),
            self.completion_tokens + usage.completion_tokens,
        )


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
        self._spent, self._told = Spent(), monotonic()
        self._background = Background()

    @property
    def spent(self) -> Spent:
        """Calls and tokens so far."""
        return self._spent

    def each(
        self, asked: Sequence[Asked], answer: Callable[[Asked], Coroutine[Any, Any, Answer]]
    ) -> list[Answer | Exception]:
        """An answer, or the error it ended with, for each. ReaderUnavailable ends them all, and is raised."""
        return self._background.run(_each(asked, answer), self.config.batch_seconds)

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
            kind = Broken if isinstance(fault, _Breakage) else ReaderUnavailable
            raise kind(f"the remote server: {fault}", fault.retry_after) from fault
        await asyncio.sleep(wait)

    async def _attempt(self, body: bytes, deadline: float) -> wire.Completion:
        within = max(deadline - monotonic(), 0.001)
        reply = await self._channel.post(COMPLETIONS, body, within=within)
        if reply.status != 200:
            raise self._refused(reply)
        try:
            answer = wire.completion(reply.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _Breakage(f"no completion: {type(error).__name__}", again=True) from None
        self._count(answer.usage)
        return answer

    def _refused(self, reply: Reply) -> Exception:
        """What an answer other than 200 means. Its own words are not repeated: they may quote a turn."""
        reason = wire.refusal(reply.body)
        refused = Refused(reply.status, reason)
        if reply.status in _AGAIN or reply.status >= 500:
            kind = _Breakage if reply.status == _BREAKS else Faulty
            return kind(str(refused), again=True, retry_after=self._believed(reply.retry_after))
        if reply.status in _OF_THE_CALL:
            return refused
        _log.warning("remote.misconfigured", status=reply.status, reason=reason)
        message = f"the remote server: {refused}; {remedy_for(reply.status)}"
        return ReaderUnavailable(message, self.config.config_pause)

    def _believed(self, retry_after: float | None) -> float | None:
        return None if retry_after is None else min(retry_after, self.config.longest_quiet)

    def _count(self, usage: wire.Usage | None) -> None:
        self._spent = self._spent.plus(usage)
        if monotonic() - self._told >= _SPENT_EVERY:
            self._told = monotonic()
            _log.info("remote.spent", **msgspec.structs.asdict(self._spent))


class _Breakage(Faulty):
    """An answer that may be this call's fault as well as the server's."""


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
