"""Events into the backlog, and the backlog out to receivers: bounded, and nothing of it lost by an end."""

import asyncio
import datetime as dt
import random
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import structlog

from stream.webhooks.port import Backlog, Delivery, Status, Webhook
from stream.webhooks.schedule import Answer, State, after
from stream.webhooks.sending import ATTEMPT_SECONDS, Attempts, payload
from stream.webhooks.signing import BadSecret
from tracker.events import EventType

log = structlog.get_logger(__name__)

AT_ONCE = 32  # attempts
IDLE_SECONDS = 1.0  # between looks, where nothing is due
LEASE = dt.timedelta(seconds=3 * ATTEMPT_SECONDS)  # an attempt may wait for a connection first
KEPT = dt.timedelta(days=30)  # deliveries that ended, as long as the events' topics

Now = Callable[[], dt.datetime]


class _Named(msgspec.Struct):
    tenant: str
    conversation: str


class _Event(msgspec.Struct):
    """What decides to whom an event goes."""

    id: str
    type: str
    data: _Named
    previous: str | None = None  # stands on flips and on retractions of flips alone


def deliveries(events: Iterable[bytes], webhooks: Sequence[Webhook], now: dt.datetime) -> Iterator[Delivery]:
    """Each event once for every webhook of its tenant that wants it."""
    active = [each for each in webhooks if each.status is Status.ACTIVE]
    for event in events:
        read = msgspec.json.decode(event, type=_Event)
        for webhook in active:
            if _wanted(read, webhook):
                yield Delivery(
                    webhook=webhook.id,
                    tenant=webhook.tenant,
                    event=read.id,
                    conversation=read.data.conversation,
                    body=payload(event),
                    due=now,
                )


def _wanted(event: _Event, webhook: Webhook) -> bool:
    if event.data.tenant != webhook.tenant:
        return False
    if webhook.conversations and event.data.conversation not in webhook.conversations:
        return False
    if webhook.types:
        return event.type in webhook.types
    return event.type == EventType.FLIPPED or event.previous is not None


class Dispatcher:
    """Sends what is due until it is cancelled; several may run at once."""

    def __init__(
        self, backlog: Backlog, attempts: Attempts, now: Now, chance: Callable[[], float] = random.random
    ) -> None:
        self._backlog, self._attempts, self._now, self._chance = backlog, attempts, now, chance

    async def run(self) -> None:
        """For ever. Raises what the backlog raises."""
        while True:
            if not await self.once():
                await self._backlog.trim(self._now() - KEPT)
                await asyncio.sleep(IDLE_SECONDS)

    async def once(self) -> int:
        """One round of what is due now; how many attempts were made."""
        now = self._now()
        taken = await self._backlog.claim(now, now + LEASE, AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for webhook, delivery in taken:
                group.create_task(self._attempt(webhook, delivery))
        return len(taken)

    async def _attempt(self, webhook: Webhook, delivery: Delivery) -> None:
        try:
            answer = await self._attempts.make(webhook.url, webhook.secrets, delivery.event, delivery.body)
        except BadSecret:  # of one webhook, which must not end the others' attempts
            answer = Answer(None)
        now = self._now()
        outcome = after(answer, delivery.attempts + 1, now, self._chance())
        if outcome.state is not State.DELIVERED:
            told = {"webhook": webhook.id, "state": outcome.state.value, "status": answer.status}
            log.info("webhook.refused", attempts=delivery.attempts + 1, **told)
        await self._backlog.settle(delivery, outcome, answer.status, now)
