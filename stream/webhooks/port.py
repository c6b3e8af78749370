"""Where webhooks and what is still to be delivered to them live: the port, and what stands in it."""

import datetime as dt
import enum
from collections.abc import Sequence
from typing import Protocol

import msgspec

from stream.webhooks.schedule import Outcome, State

MOST = 20  # webhooks a tenant


class Status(enum.StrEnum):
    """Of a webhook."""

    ACTIVE = "active"
    DISABLED = "disabled"  # by its tenant, or since its receiver answered 410


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver of a tenant's events. Without types it is sent flips and their retractions."""

    id: str
    tenant: str
    url: str
    secrets: tuple[str, ...]  # the newest first; an older one beside it while receivers change
    types: tuple[str, ...] = ()
    conversations: tuple[str, ...] = ()  # none: all
    status: Status = Status.ACTIVE
    by: str  # the principal who made it
    made_at: dt.datetime
    position: int = 0  # of its tenant's events, up to which it has its deliveries


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One event to one webhook. Its event's id is the message's, over all attempts."""

    webhook: str
    tenant: str
    event: str
    conversation: str
    body: bytes
    state: State = State.WAITING
    attempts: int = 0  # that were made
    due: dt.datetime | None = None  # None where none is to come
    status: int | None = None  # of the last answer


class TooManyWebhooks(Exception):
    """A tenant has as many as it may have."""


class Backlog(Protocol):
    """Webhooks of all tenants and their deliveries. A call raises DatabaseUnavailable where it is away.

    A tenant never sees another's: what is not its own is not there.
    """

    async def add(self, webhook: Webhook) -> None:
        """Keep a new webhook. Raises TooManyWebhooks."""
        ...

    async def webhooks(self, tenant: str) -> list[Webhook]:
        """A tenant's, the oldest first."""
        ...

    async def change(self, webhook: Webhook) -> bool:
        """Keep a webhook as it is now, but for its position; whether its tenant has one of this id."""
        ...

    async def remove(self, tenant: str, ident: str) -> bool:
        """Forget a webhook with its deliveries; whether there was one."""
        ...

    async def active(self) -> list[Webhook]:
        """The active ones of all tenants, by tenant and id."""
        ...

    async def advance(self, webhook: Webhook, position: int, deliveries: Sequence[Delivery]) -> None:
        """Keep a webhook's deliveries and that they are all up to a position, both or neither.

        Those that are kept already stay as they are, and a position never goes back.
        """
        ...

    async def claim(self, now: dt.datetime, until: dt.datetime, most: int) -> list[tuple[Webhook, Delivery]]:
        """Deliveries of active webhooks that are due, the longest due first; nobody is given them again
        before `until`.

        One whose sender ended comes again then: a receiver drops ids it has seen.
        """
        ...

    async def settle(
        self, delivery: Delivery, outcome: Outcome, status: int | None, now: dt.datetime
    ) -> None:
        """Note an attempt's end; a webhook whose receiver is gone is disabled."""
        ...

    async def failed(self, tenant: str, webhook: str, after: str, most: int) -> list[Delivery]:
        """Those whose attempts are used up, by event id, behind `after`."""
        ...

    async def resend(self, tenant: str, webhook: str, event: str, now: dt.datetime) -> bool:
        """Begin anew with a delivery that ended; whether there was one."""
        ...

    async def events(self, tenant: str, conversation: str) -> list[str]:
        """The ids of a conversation's events that anything is kept of."""
        ...

    async def drop(self, tenant: str, events: Sequence[str]) -> None:
        """Keep nothing of these events, delivered or not."""
        ...

    async def trim(self, before: dt.datetime) -> int:
        """Forget deliveries that ended before then, however they ended; how many."""
        ...
