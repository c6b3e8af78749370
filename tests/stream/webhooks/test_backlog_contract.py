"""What every backlog of webhooks does: the in-memory twin, and those in databases."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Iterable, Sequence

import pytest
from msgspec.structs import replace

from stream.database import open_database
from stream.database.upgrading import BASE, downgrade, upgrade
from stream.webhooks.memory import MemoryBacklog
from stream.webhooks.port import MOST, Backlog, Delivery, Status, TooManyWebhooks, Webhook
from stream.webhooks.schedule import Outcome, State
from stream.webhooks.sql import SqlBacklog

NOW = dt.datetime(2026, 12, 1, 12, 0, tzinfo=dt.UTC)
URL = "https://example.org/in"
SECOND = dt.timedelta(seconds=1)
LATER = NOW + 60 * SECOND


def webhook(ident: str = "w1", tenant: str = "acme", at: int = 0) -> Webhook:
    made_at = NOW + at * SECOND
    return Webhook(id=ident, tenant=tenant, url=URL, secrets=("whsec_x",), by="ann", made_at=made_at)


def delivery(event: str, webhook: str = "w1", tenant: str = "acme", due: dt.datetime = NOW) -> Delivery:
    body = event.encode()
    return Delivery(webhook=webhook, tenant=tenant, event=event, conversation="r", body=body, due=due)


async def enqueue(backlog: Backlog, given: Sequence[Delivery], position: int = 1) -> None:
    """Each for the webhook that it is for."""
    for one in given:
        await backlog.advance(webhook(one.webhook, one.tenant), position, [one])


def events(taken: Iterable[tuple[Webhook, Delivery]]) -> list[str]:
    return [one.event for _, one in taken]


class Contract:
    """The suite; a subclass has the fixture `backlog`."""

    async def test_webhooks_are_kept_by_tenant(self, backlog: Backlog) -> None:
        given = {"secrets": ("whsec_a", "whsec_b"), "types": ("volteface.stance.flipped",)}
        second = replace(webhook("w2", at=1), conversations=("r",), **given)
        await backlog.add(second)
        await backlog.add(webhook())
        await backlog.add(webhook("w3", "other"))
        assert await backlog.webhooks("acme") == [webhook(), second]
        assert await backlog.webhooks("nobody") == []

    async def test_a_tenant_has_so_many_at_most(self, backlog: Backlog) -> None:
        for number in range(MOST):
            await backlog.add(webhook(f"w{number}"))
        with pytest.raises(TooManyWebhooks):
            await backlog.add(webhook("one more"))
        await backlog.add(webhook("w1", "other"))
        assert len(await backlog.webhooks("acme")) == MOST

    async def test_a_webhook_is_changed_by_its_tenant_alone(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        assert await backlog.change(replace(webhook(), url="https://example.org/new"))
        assert not await backlog.change(replace(webhook(), tenant="other"))
        assert [each.url for each in await backlog.webhooks("acme")] == ["https://example.org/new"]
        assert not await backlog.remove("other", "w1")
        assert await backlog.remove("acme", "w1")
        assert not await backlog.remove("acme", "w1")

    async def test_what_is_due_is_claimed_once(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await enqueue(
            backlog,
            [delivery("late", due=NOW), delivery("early", due=NOW - SECOND), delivery("not yet", due=LATER)],
        )
        assert events(await backlog.claim(NOW, LATER, 1)) == ["early"]
        taken = await backlog.claim(NOW, LATER, 9)
        assert (events(taken), taken[0][0].url) == (["late"], URL)
        assert await backlog.claim(NOW, LATER, 9) == []
        again = events(await backlog.claim(LATER, LATER + SECOND, 9))
        assert sorted(again) == ["early", "late", "not yet"]

    async def test_a_position_never_goes_back(self, backlog: Backlog) -> None:
        await backlog.add(replace(webhook(), position=7))
        for position, reached in ((9, 9), (8, 9), (12, 12)):
            await backlog.advance(webhook(), position, [])
            assert [one.position for one in await backlog.webhooks("acme")] == [reached]
        await backlog.change(replace(webhook(), position=1))
        assert [one.position for one in await backlog.webhooks("acme")] == [12]

    async def test_the_active_ones_of_all_tenants(self, backlog: Backlog) -> None:
        off = replace(webhook("w3"), status=Status.DISABLED)
        for one in (webhook("w2"), webhook("w1", "other"), webhook(), off):
            await backlog.add(one)
        assert await backlog.active() == [webhook(), webhook("w2"), webhook("w1", "other")]

    async def test_of_what_is_forgotten_nothing_is_kept(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await backlog.add(webhook("w1", "other"))
        await enqueue(backlog, [delivery("e"), delivery("f"), delivery("g"), delivery("e", tenant="other")])
        [(_, taken)] = await backlog.claim(NOW, LATER, 1)
        await backlog.settle(taken, Outcome(State.FAILED), 500, NOW)
        assert await backlog.events("acme", "r") == ["e", "f", "g"]
        assert await backlog.events("acme", "another") == []
        await backlog.drop("acme", ["e", "g", "unknown"])
        assert await backlog.events("acme", "r") == ["f"]
        assert await backlog.failed("acme", "w1", "", 9) == []
        assert await backlog.events("other", "r") == ["e"]

    async def test_what_is_kept_already_stays(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await enqueue(backlog, [delivery("e"), delivery("e")])
        [(_, taken)] = await backlog.claim(NOW, LATER, 9)
        await backlog.settle(taken, Outcome(State.DELIVERED), 204, NOW)
        await enqueue(backlog, [delivery("e")])
        assert await backlog.claim(LATER, LATER, 9) == []

    async def test_nothing_is_kept_for_nobody(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await enqueue(backlog, [delivery("e", "w2"), delivery("e", "w1", "other")])
        assert await backlog.claim(NOW, LATER, 9) == []

    async def test_an_attempt_that_failed_comes_again(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await enqueue(backlog, [delivery("e")])
        [(_, taken)] = await backlog.claim(NOW, LATER, 9)
        await backlog.settle(taken, Outcome(State.WAITING, NOW + 5 * SECOND), 503, NOW)
        assert await backlog.claim(NOW + 4 * SECOND, LATER, 9) == []
        [(_, again)] = await backlog.claim(NOW + 5 * SECOND, LATER, 9)
        assert (again.attempts, again.status, again.state, again.body) == (1, 503, State.WAITING, b"e")

    async def test_who_is_gone_is_sent_nothing_more(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await enqueue(backlog, [delivery("e"), delivery("f")])
        taken = {one.event: one for _, one in await backlog.claim(NOW, NOW + SECOND, 9)}
        await backlog.settle(taken["e"], Outcome(State.GONE), 410, NOW)
        [found] = await backlog.webhooks("acme")
        assert found.status is Status.DISABLED
        assert await backlog.claim(LATER, LATER, 9) == []
        await backlog.change(replace(found, status=Status.ACTIVE))
        assert events(await backlog.claim(LATER, LATER, 9)) == ["f"]

    async def test_failures_are_listed_and_sent_again(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await backlog.add(webhook("w1", "other"))
        await enqueue(backlog, [delivery("e"), delivery("f"), delivery("g"), delivery("e", tenant="other")])
        for _, taken in await backlog.claim(NOW, LATER, 9):
            state = State.DELIVERED if taken.event == "g" else State.FAILED
            await backlog.settle(taken, Outcome(state), 500, NOW)
        assert [each.event for each in await backlog.failed("acme", "w1", "", 9)] == ["e", "f"]
        assert [each.event for each in await backlog.failed("acme", "w1", "e", 9)] == ["f"]
        assert [each.event for each in await backlog.failed("acme", "w1", "", 1)] == ["e"]
        assert await backlog.failed("nobody", "w1", "", 9) == []
        assert await backlog.resend("acme", "w1", "e", LATER)
        assert not await backlog.resend("acme", "w1", "e", LATER)
        assert not await backlog.resend("nobody", "w1", "f", LATER)
        [(_, again)] = await backlog.claim(LATER, LATER, 9)
        assert (again.event, again.tenant, again.attempts) == ("e", "acme", 0)

    async def test_what_ended_long_ago_is_forgotten(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await enqueue(backlog, [delivery("e"), delivery("f"), delivery("g")])
        times = {"e": (State.FAILED, NOW), "f": (State.DELIVERED, LATER), "g": (State.WAITING, NOW)}
        for _, taken in await backlog.claim(NOW, NOW + SECOND, 9):
            state, ended = times[taken.event]
            due = LATER if state is State.WAITING else None
            await backlog.settle(taken, Outcome(state, due), 500, ended)
        assert await backlog.trim(NOW) == 0
        assert await backlog.trim(LATER) == 1
        assert await backlog.failed("acme", "w1", "", 9) == []
        assert events(await backlog.claim(LATER, LATER, 9)) == ["g"]

    async def test_a_webhook_takes_its_deliveries_with_it(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await enqueue(backlog, [delivery("e"), delivery("f")])
        [(_, taken)] = await backlog.claim(NOW, LATER, 1)
        await backlog.remove("acme", "w1")
        await backlog.settle(taken, Outcome(State.FAILED), 500, NOW)
        await backlog.add(webhook())
        assert await backlog.claim(LATER, LATER, 9) == []
        assert await backlog.failed("acme", "w1", "", 9) == []


class TestMemoryBacklog(Contract):
    @pytest.fixture
    def backlog(self) -> Backlog:
        return MemoryBacklog()


class TestSqlBacklog(Contract):
    @pytest.fixture
    async def backlog(self, database_url: str) -> AsyncIterator[Backlog]:
        await upgrade(database_url)
        database = open_database(database_url)
        yield SqlBacklog(database)
        await database.close()
        await downgrade(database_url, BASE)

    async def test_two_senders_are_given_each_once(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await enqueue(backlog, [delivery(f"e{number:02}") for number in range(40)])
        given = await asyncio.gather(*(backlog.claim(NOW, LATER, 10) for _ in range(4)))
        found = [event for taken in given for event in events(taken)]
        assert len(found) == len(set(found)) > 0
        found += events(await backlog.claim(NOW, LATER, 40))
        assert sorted(found) == [f"e{number:02}" for number in range(40)]

    async def test_names_may_be_anything(self, backlog: Backlog) -> None:
        odd = replace(webhook("w\x00", "té/ \x01"), conversations=("a b", "\x00", "李"), by="李\x00雷")
        await backlog.add(odd)
        assert await backlog.webhooks("té/ \x01") == [odd]
        await enqueue(backlog, [delivery("e", "w\x00", "té/ \x01")])
        assert events(await backlog.claim(NOW, LATER, 9)) == ["e"]
