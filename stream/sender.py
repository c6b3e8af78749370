"""Sending with delivery: journal first, then the rest; nothing counts as sent before the broker says so."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from stream.kafka import REQUEST_TIMEOUT_SECONDS, client_options
from stream.outbox import JOURNAL
from stream.settings import Settings
from stream.store.port import Message
from stream.topics import topic

log = structlog.get_logger(__name__)

MAX_REQUEST_BYTES = 1_000_000
STOP_TIMEOUT_SECONDS = 5.0

Headers = Sequence[tuple[str, bytes]]


class SenderUnavailable(Exception):
    """The broker did not confirm what was sent: send all of it again."""


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

    async def send_with_headers(self, messages: Iterable[tuple[Message, Headers]]) -> None:
        """Send in order and wait for delivery. Raises SenderUnavailable."""
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
                producer = await self._started()
                sent = [await self._send_one(producer, message, headers) for message, headers in messages]
                await asyncio.gather(*sent)
        except (KafkaError, TimeoutError, OSError) as error:
            producer, self._producer = self._producer, None
            if producer is not None:
                await _abandon(producer)
            raise SenderUnavailable(repr(error)) from error

    async def _send_one(
        self, producer: AIOKafkaProducer, message: Message, headers: Headers
    ) -> asyncio.Future[Any]:
        name = topic(self._settings, message.topic)
        sent: asyncio.Future[Any] = await producer.send(
            name, message.value, key=message.key, headers=list(headers)
        )
        return sent

    async def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            producer = AIOKafkaProducer(
                **client_options(self._settings),
                acks="all",
                enable_idempotence=self._settings.broker_idempotence,
                max_request_size=MAX_REQUEST_BYTES,
            )
            self._producer = producer
            await producer.start()
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
