"""The in-memory twin of the webhooks' backlog."""

import datetime as dt
from collections.abc import Sequence

from msgspec.structs import replace

from stream.webhooks.port import MOST, Delivery, Status, TooManyWebhooks, Webhook
from stream.webhooks.schedule import Outcome, State


class MemoryBacklog:
    """A Backlog in this process."""

    def __init__(self) -> None:
        self._webhooks: dict[tuple[str, str], Webhook] = {}
        self._deliveries: dict[tuple[str, str, str], Delivery] = {}
        self._ended: dict[tuple[str, str, str], dt.datetime] = {}

    async def add(self, webhook: Webhook) -> None:
        """As the port says."""
        if len(await self.webhooks(webhook.tenant)) >= MOST:
            raise TooManyWebhooks
        self._webhooks[webhook.tenant, webhook.id] = webhook

    async def webhooks(self, tenant: str) -> list[Webhook]:
        """As the port says."""
        own = [each for each in self._webhooks.values() if each.tenant == tenant]
        return sorted(own, key=lambda each: (each.made_at, each.id))

    async def change(self, webhook: Webhook) -> bool:
        """As the port says."""
        key = webhook.tenant, webhook.id
        if key not in self._webhooks:
            return False
        self._webhooks[key] = replace(webhook, position=self._webhooks[key].position)
        return True

    async def remove(self, tenant: str, ident: str) -> bool:
        """As the port says."""
        for key in [key for key in self._deliveries if key[:2] == (tenant, ident)]:
            del self._deliveries[key]
            self._ended.pop(key, None)
        return self._webhooks.pop((tenant, ident), None) is not None

    async def active(self) -> list[Webhook]:
        """As the port says."""
        found = [each for each in self._webhooks.values() if each.status is Status.ACTIVE]
        return sorted(found, key=lambda each: (each.tenant, each.id))

    async def advance(self, webhook: Webhook, position: int, deliveries: Sequence[Delivery]) -> None:
        """As the port says."""
        owner = webhook.tenant, webhook.id
        if (kept := self._webhooks.get(owner)) is None:
            return
        self._webhooks[owner] = replace(kept, position=max(kept.position, position))
        for each in deliveries:
            self._deliveries.setdefault(_key(each), each)

    async def claim(self, now: dt.datetime, until: dt.datetime, most: int) -> list[tuple[Webhook, Delivery]]:
        """As the port says."""
        due = sorted(
            (each.due, key)
            for key, each in self._deliveries.items()
            if each.due is not None and each.due <= now and self._webhooks[key[:2]].status is Status.ACTIVE
        )
        taken = []
        for _, key in due[:most]:
            self._deliveries[key] = replace(self._deliveries[key], due=until)
            taken.append((self._webhooks[key[:2]], self._deliveries[key]))
        return taken

    async def settle(
        self, delivery: Delivery, outcome: Outcome, status: int | None, now: dt.datetime
    ) -> None:
        """As the port says."""
        key = _key(delivery)
        if key not in self._deliveries:  # removed meanwhile
            return
        self._deliveries[key] = replace(
            delivery, state=outcome.state, due=outcome.due, status=status, attempts=delivery.attempts + 1
        )
        if outcome.due is None:
            self._ended[key] = now
        if outcome.state is State.GONE:
            self._webhooks[key[:2]] = replace(self._webhooks[key[:2]], status=Status.DISABLED)

    async def failed(self, tenant: str, webhook: str, after: str, most: int) -> list[Delivery]:
        """As the port says."""
        found = [
            each
            for key, each in self._deliveries.items()
            if key[:2] == (tenant, webhook) and each.state is State.FAILED and each.event > after
        ]
        return sorted(found, key=lambda each: each.event)[:most]

    async def resend(self, tenant: str, webhook: str, event: str, now: dt.datetime) -> bool:
        """As the port says."""
        key = tenant, webhook, event
        kept = self._deliveries.get(key)
        if kept is None or kept.due is not None:
            return False
        del self._ended[key]
        self._deliveries[key] = replace(kept, state=State.WAITING, attempts=0, due=now)
        return True

    async def events(self, tenant: str, conversation: str) -> list[str]:
        """As the port says."""
        found = {
            each.event
            for each in self._deliveries.values()
            if (each.tenant, each.conversation) == (tenant, conversation)
        }
        return sorted(found)

    async def drop(self, tenant: str, events: Sequence[str]) -> None:
        """As the port says."""
        for key in [key for key in self._deliveries if key[0] == tenant and key[2] in events]:
            del self._deliveries[key]
            self._ended.pop(key, None)

    async def trim(self, before: dt.datetime) -> int:
        """As the port says."""
        old = [key for key, ended in self._ended.items() if ended < before]
        for key in old:
            del self._ended[key]
            self._deliveries.pop(key, None)
        return len(old)


def _key(delivery: Delivery) -> tuple[str, str, str]:
    return delivery.tenant, delivery.webhook, delivery.event
