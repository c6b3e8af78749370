"""Records on their way to the turns topic: each call waits until the broker has confirmed all of its own.

Calls that come while one is under way go together in the next: the broker is asked once for all of them, and
the records of one conversation keep the order in which they came.
"""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Protocol

import msgspec
import structlog

from stream.sender import SenderUnavailable
from stream.store.port import Message
from tracker import keys, records
from tracker.records import Record

log = structlog.get_logger(__name__)

TURNS = "turns"
CONFIRM_SECONDS = 10.0
AWAY_SECONDS = 10.0  # a gateway that is sent no turns can never find that the broker is back
MOST_WAITING_BYTES = 32 * 1024 * 1024
MOST_TOGETHER = 2000  # messages


class LogUnavailable(Exception):
    """The broker has not confirmed: some of the records may stand in the topic, and may be sent again."""


class Sends(Protocol):
    """What a Sender does."""

    async def send(self, messages: Sequence[Message]) -> None:
        """Send in order and wait for delivery. Raises SenderUnavailable."""
        ...


class _Call(msgspec.Struct, frozen=True, eq=False):
    messages: list[Message]
    size: int
    done: asyncio.Future[None]


class TurnsLog:
    """The turns topic, to be written."""

    def __init__(self, sender: Sends, *, seconds: float | None = None) -> None:
        self._sender, self._seconds = sender, seconds or CONFIRM_SECONDS
        self._waiting: list[_Call] = []
        self._size = 0
        self._wake = asyncio.Event()
        self._failed = -AWAY_SECONDS  # when an attempt did, and none succeeded since

    @property
    def away(self) -> bool:
        """Whether the last attempt failed just now; who is sent nothing meanwhile must be tried again."""
        return monotonic() - self._failed < AWAY_SECONDS

    async def append(self, given: Sequence[Record]) -> None:
        """Write records in order. Raises LogUnavailable where that is not confirmed in time."""
        messages = [_message(record) for record in given]
        size = sum(len(message.value or b"") for message in messages)
        if self._size and self._size + size > MOST_WAITING_BYTES:
            raise LogUnavailable("too much waits already")
        call = _Call(messages, size, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        self._size += size
        self._wake.set()
        try:
            async with asyncio.timeout(self._seconds):
                await call.done
        except TimeoutError:
            self._failed = monotonic()
            raise LogUnavailable(f"no confirmation within {self._seconds:g} s") from None
        finally:
            self._size -= size

    async def run(self) -> None:
        """Write what waits, until cancelled."""
        while True:
            await self._wake.wait()
            together = self._taken()
            if together:
                await self._write(together)

    def _taken(self) -> list[_Call]:
        """The next calls that go together; those that nobody waits for any more are left out."""
        taken, count = list[_Call](), 0
        while self._waiting and count < MOST_TOGETHER:
            call = self._waiting.pop(0)
            if not call.done.done():
                taken.append(call)
                count += len(call.messages)
        if not self._waiting:
            self._wake.clear()
        return taken

    async def _write(self, together: list[_Call]) -> None:
        try:
            await self._sender.send([message for call in together for message in call.messages])
        except SenderUnavailable as error:
            self._failed = monotonic()
            log.warning("gateway.broker_away", error=str(error), calls=len(together))
            for call in together:
                if not call.done.done():
                    call.done.set_exception(LogUnavailable(str(error)))
        else:
            self._failed = -AWAY_SECONDS
            for call in together:
                if not call.done.done():
                    call.done.set_result(None)


def _message(record: Record) -> Message:
    key = keys.conversation_key(record.tenant, record.conversation)
    return Message(TURNS, key, records.encode(record))
