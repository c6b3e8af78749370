"""Sending with delivery: journal first, then the rest; nothing counts as sent before the broker says so.

A message that is too large can never be sent, and to wait for it would hold up all others for ever: it is put
aside, and the log says so.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from stream.kafka import REQUEST_TIMEOUT_SECONDS, begin, client_options, in_words
from stream.outbox import JOURNAL
from stream.settings import Settings
from stream.store.port import Message
from stream.topics import topic

log = structlog.get_logger(__name__)

MAX_REQUEST_BYTES = 1_000_000
STOP_TIMEOUT_SECONDS = 1.5  # twice: to stop, and where that fails to let go

Headers = Sequence[tuple[str, bytes]]
ToSend = tuple[Message, Headers]


class SenderUnavailable(Exception):
    """The broker did not confirm what was sent: send all of it again."""


async def begun(
    producer: AIOKafkaProducer, settings: Settings, given: ToSend, partition: int | None = None
) -> asyncio.Future[Any]:
    """Begin to send to a topic of the run; the future ends with the delivery."""
    message, headers = given
    key = b"" if message.key is message.value is None else message.key  # aiokafka asks for one of them
    where: dict[str, Any] = {"key": key, "headers": list(headers), "partition": partition}
    sent: asyncio.Future[Any]
    try:
        sent = await producer.send(topic(settings, message.topic), message.value, **where)
    except MessageSizeTooLargeError as error:  # above our own limit; a broker's refusal comes later
        sent = asyncio.get_running_loop().create_future()
        sent.set_exception(error)
    return sent


class Sender:
    """A producer for a run's topics, made anew after a failure.

    An idempotent producer may stay stuck after a broker's outage (aiokafka #1017), hence anew.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._producer: AIOKafkaProducer | None = None

    async def send(self, messages: Sequence[Message]) -> None:
        """Send, journal entries first, and wait for delivery. Raises SenderUnavailable."""
        journal = [message for message in messages if message.topic == JOURNAL]
        others = [message for message in messages if message.topic != JOURNAL]
        for part in (journal, others):
            if part:
                await self.send_with_headers((message, ()) for message in part)

    async def send_with_headers(self, messages: Iterable[ToSend]) -> None:
        """Send in order and wait for delivery. Raises SenderUnavailable."""
        left = list(messages)
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
                while left:
                    left = await self._attempt(left)
        except (KafkaError, TimeoutError, OSError) as error:
            await self._give_up()
            raise SenderUnavailable(in_words(error)) from error

    async def _attempt(self, messages: list[ToSend]) -> list[ToSend]:
        """Send and wait; returns what failed since a message before it was too large, which is told."""
        producer = await self._started()
        sent = [await begun(producer, self._settings, given) for given in messages]
        results = await asyncio.gather(*sent, return_exceptions=True)
        failed = [
            (given, error)
            for given, error in zip(messages, results, strict=True)
            if isinstance(error, BaseException)
        ]
        refused = [message for (message, _), error in failed if isinstance(error, MessageSizeTooLargeError)]
        if not refused:
            if failed:
                raise failed[0][1]
            return []
        for message in refused:
            _tell_too_large(message)
        await self._give_up()  # an idempotent producer has counted what the broker did not take
        return [given for given, error in failed if not isinstance(error, MessageSizeTooLargeError)]

    async def _give_up(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await _abandon(producer)

    async def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            producer = AIOKafkaProducer(
                **client_options(self._settings),
                acks="all",
                enable_idempotence=self._settings.broker_idempotence,
                max_request_size=MAX_REQUEST_BYTES,
            )
            self._producer = producer
            await begin(producer)
        return self._producer

    async def close(self) -> None:
        """Stop the producer; a broker that is down does not hold it up (aiokafka #1101)."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
                await producer.stop()
        except (KafkaError, TimeoutError, OSError) as error:
            log.warning("sender.stop_failed", error=repr(error))
            await _abandon(producer)


def _tell_too_large(message: Message) -> None:
    conversation = "/".join((message.key or b"").decode(errors="replace").split("/")[:2])  # and no holder
    size = len(message.value or b"")
    log.error("message.too_large", topic=message.topic, conversation=conversation, bytes=size)


async def _abandon(producer: AIOKafkaProducer) -> None:
    """End a producer without what it still holds.

    All of that is sent again by the next one, and must not arrive after it. aiokafka has no such stop.
    """
    producer._closed = True
    producer._message_accumulator.fail_all(SenderUnavailable("its producer was given up"))
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
            # Its tasks may stumble over what was taken from them: they end, and that is all that counts.
            await asyncio.gather(producer._sender.close(), producer.client.close(), return_exceptions=True)
