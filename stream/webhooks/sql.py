"""The webhooks' backlog in the database."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, and_, delete, func, insert, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from stream.database.engine import Database
from stream.database.moments import moment, number
from stream.database.webhook_tables import deliveries, webhooks
from stream.webhooks.port import MOST, Delivery, Status, TooManyWebhooks, Webhook
from stream.webhooks.schedule import Outcome, State

_INSERT: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
AT_ONCE = 500  # events in one statement
_OF_WEBHOOK = and_(deliveries.c.tenant == webhooks.c.tenant, deliveries.c.webhook == webhooks.c.id)


class SqlBacklog:
    """A Backlog in PostgreSQL or SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, webhook: Webhook) -> None:
        """As the port says."""
        async with self._database.writing() as connection:
            own = select(func.count()).where(webhooks.c.tenant == webhook.tenant)
            if ((await connection.execute(own)).scalar_one()) >= MOST:
                raise TooManyWebhooks
            await connection.execute(insert(webhooks).values(_values(webhook)))

    async def webhooks(self, tenant: str) -> list[Webhook]:
        """As the port says."""
        wanted = select(webhooks).where(webhooks.c.tenant == tenant)
        async with self._database.reading() as connection:
            found = await connection.execute(wanted.order_by(webhooks.c.made_at, webhooks.c.id))
            return [_webhook(row) for row in found]

    async def change(self, webhook: Webhook) -> bool:
        """As the port says."""
        held = and_(webhooks.c.tenant == webhook.tenant, webhooks.c.id == webhook.id)
        values = {name: value for name, value in _values(webhook).items() if name != "position"}
        async with self._database.writing() as connection:
            done = await connection.execute(update(webhooks).where(held).values(values))
        return bool(done.rowcount)

    async def remove(self, tenant: str, ident: str) -> bool:
        """As the port says."""
        held = and_(webhooks.c.tenant == tenant, webhooks.c.id == ident)
        async with self._database.writing() as connection:
            done = await connection.execute(delete(webhooks).where(held))
        return bool(done.rowcount)

    async def active(self) -> list[Webhook]:
        """As the port says."""
        wanted = select(webhooks).where(webhooks.c.status == Status.ACTIVE.value)
        async with self._database.reading() as connection:
            found = await connection.execute(wanted.order_by(webhooks.c.tenant, webhooks.c.id))
            return [_webhook(row) for row in found]

    async def advance(self, webhook: Webhook, position: int, given: Sequence[Delivery]) -> None:
        """As the port says."""
        held = and_(webhooks.c.tenant == webhook.tenant, webhooks.c.id == webhook.id)
        async with self._database.writing() as connection:
            wanted = select(webhooks.c.position).where(held).with_for_update()
            reached = (await connection.execute(wanted)).scalar_one_or_none()
            if reached is None:
                return
            if position > reached:
                await connection.execute(update(webhooks).where(held).values(position=position))
            if given:
                kept = _INSERT[self._database.dialect](deliveries).on_conflict_do_nothing()
                await connection.execute(kept, [_row(one) for one in given])

    async def claim(self, now: dt.datetime, until: dt.datetime, most: int) -> list[tuple[Webhook, Delivery]]:
        """As the port says."""
        due = and_(deliveries.c.due <= number(now), webhooks.c.status == Status.ACTIVE.value)
        wanted = (
            select(deliveries)
            .join(webhooks, _OF_WEBHOOK)
            .where(due)
            .order_by(deliveries.c.due, deliveries.c.event)
            .limit(most)
            .with_for_update(of=deliveries, skip_locked=True)  # what another takes now is not waited for
        )
        async with self._database.writing() as connection:
            taken = [_delivery(row) for row in await connection.execute(wanted)]
            if not taken:
                return []
            keys = [(one.tenant, one.webhook, one.event) for one in taken]
            held = tuple_(deliveries.c.tenant, deliveries.c.webhook, deliveries.c.event).in_(keys)
            await connection.execute(update(deliveries).where(held).values(due=number(until)))
            owners = await _owners(connection, taken)
        return [(owners[one.tenant, one.webhook], msgspec.structs.replace(one, due=until)) for one in taken]

    async def settle(
        self, delivery: Delivery, outcome: Outcome, status: int | None, now: dt.datetime
    ) -> None:
        """As the port says."""
        told = {
            "state": outcome.state.value,
            "due": None if outcome.due is None else number(outcome.due),
            "status": status,
            "attempts": delivery.attempts + 1,
            "ended_at": number(now) if outcome.due is None else None,
        }
        async with self._database.writing() as connection:
            await connection.execute(update(deliveries).where(_is(delivery)).values(told))
            if outcome.state is State.GONE:
                held = and_(webhooks.c.tenant == delivery.tenant, webhooks.c.id == delivery.webhook)
                disabled = {"status": Status.DISABLED.value}
                await connection.execute(update(webhooks).where(held).values(disabled))

    async def failed(self, tenant: str, webhook: str, after: str, most: int) -> list[Delivery]:
        """As the port says."""
        own = and_(deliveries.c.tenant == tenant, deliveries.c.webhook == webhook)
        wanted = select(deliveries).where(
            own, deliveries.c.state == State.FAILED.value, deliveries.c.event > after
        )
        async with self._database.reading() as connection:
            found = await connection.execute(wanted.order_by(deliveries.c.event).limit(most))
            return [_delivery(row) for row in found]

    async def resend(self, tenant: str, webhook: str, event: str, now: dt.datetime) -> bool:
        """As the port says."""
        own = and_(
            deliveries.c.tenant == tenant, deliveries.c.webhook == webhook, deliveries.c.event == event
        )
        anew = {"state": State.WAITING.value, "attempts": 0, "due": number(now), "ended_at": None}
        async with self._database.writing() as connection:
            done = await connection.execute(
                update(deliveries).where(own, deliveries.c.due.is_(None)).values(anew)
            )
        return bool(done.rowcount)

    async def events(self, tenant: str, conversation: str) -> list[str]:
        """As the port says."""
        own = and_(deliveries.c.tenant == tenant, deliveries.c.conversation == conversation)
        wanted = select(deliveries.c.event).where(own).distinct().order_by(deliveries.c.event)
        async with self._database.reading() as connection:
            return list((await connection.execute(wanted)).scalars())

    async def drop(self, tenant: str, events: Sequence[str]) -> None:
        """As the port says."""
        async with self._database.writing() as connection:
            for start in range(0, len(events), AT_ONCE):
                held = deliveries.c.event.in_(events[start : start + AT_ONCE])
                await connection.execute(delete(deliveries).where(deliveries.c.tenant == tenant, held))

    async def trim(self, before: dt.datetime) -> int:
        """As the port says."""
        async with self._database.writing() as connection:
            done = await connection.execute(delete(deliveries).where(deliveries.c.ended_at < number(before)))
        return done.rowcount


async def _owners(connection: AsyncConnection, taken: Sequence[Delivery]) -> dict[tuple[str, str], Webhook]:
    keys = sorted({(one.tenant, one.webhook) for one in taken})
    wanted = select(webhooks).where(tuple_(webhooks.c.tenant, webhooks.c.id).in_(keys))
    return {(row.tenant, row.id): _webhook(row) for row in await connection.execute(wanted)}


def _is(delivery: Delivery) -> Any:
    return and_(
        deliveries.c.tenant == delivery.tenant,
        deliveries.c.webhook == delivery.webhook,
        deliveries.c.event == delivery.event,
    )


def _values(webhook: Webhook) -> dict[str, Any]:
    return msgspec.structs.asdict(webhook) | {
        "secrets": " ".join(webhook.secrets),
        "types": " ".join(webhook.types),
        "conversations": msgspec.json.encode(webhook.conversations),
        "status": webhook.status.value,
        "made_at": number(webhook.made_at),
    }


def _webhook(row: Row[Any]) -> Webhook:
    return Webhook(
        id=row.id,
        tenant=row.tenant,
        url=row.url,
        secrets=tuple(row.secrets.split()),
        types=tuple(row.types.split()),
        conversations=msgspec.json.decode(row.conversations, type=tuple[str, ...]),
        status=Status(row.status),
        by=row.by,
        made_at=moment(row.made_at),
        position=row.position,
    )


def _row(delivery: Delivery) -> dict[str, Any]:
    due = None if delivery.due is None else number(delivery.due)
    return msgspec.structs.asdict(delivery) | {"state": delivery.state.value, "due": due, "ended_at": None}


def _delivery(row: Row[Any]) -> Delivery:
    return Delivery(
        webhook=row.webhook,
        tenant=row.tenant,
        event=row.event,
        conversation=row.conversation,
        body=row.body,
        state=State(row.state),
        attempts=row.attempts,
        due=None if row.due is None else moment(row.due),
        status=row.status,
    )
