"""What every backlog of webhooks does: the in-memory twin, and those in databases."""

import datetime as dt
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from stream.webhooks.memory import MemoryBacklog
from stream.webhooks.port import MOST, Backlog, Delivery, Status, TooManyWebhooks, Webhook
from stream.webhooks.schedule import Outcome, State

NOW = dt.datetime(2026, 12, 1, 12, 0, tzinfo=dt.UTC)
URL = "https://example.org/in"
SECOND = dt.timedelta(seconds=1)
LATER = NOW + 60 * SECOND


def webhook(ident: str = "w1", tenant: str = "acme", at: int = 0) -> Webhook:
    made_at = NOW + at * SECOND
    return Webhook(id=ident, tenant=tenant, url=URL, secrets=("whsec_x",), by="ann", made_at=made_at)


def delivery(event: str, webhook: str = "w1", tenant: str = "acme", due: dt.datetime = NOW) -> Delivery:
    return Delivery(webhook=webhook, tenant=tenant, event=event, body=event.encode(), due=due)


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
        await backlog.enqueue(
            [delivery("late", due=NOW), delivery("early", due=NOW - SECOND), delivery("not yet", due=LATER)]
        )
        assert events(await backlog.claim(NOW, LATER, 1)) == ["early"]
        taken = await backlog.claim(NOW, LATER, 9)
        assert (events(taken), taken[0][0]) == (["late"], webhook())
        assert await backlog.claim(NOW, LATER, 9) == []
        again = events(await backlog.claim(LATER, LATER + SECOND, 9))
        assert sorted(again) == ["early", "late", "not yet"]

    async def test_what_is_kept_already_stays(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await backlog.enqueue([delivery("e"), delivery("e")])
        [(_, taken)] = await backlog.claim(NOW, LATER, 9)
        await backlog.settle(taken, Outcome(State.DELIVERED), 204, NOW)
        await backlog.enqueue([delivery("e")])
        assert await backlog.claim(LATER, LATER, 9) == []

    async def test_nothing_is_kept_for_nobody(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await backlog.enqueue([delivery("e", "w2"), delivery("e", "w1", "other")])
        assert await backlog.claim(NOW, LATER, 9) == []

    async def test_an_attempt_that_failed_comes_again(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await backlog.enqueue([delivery("e")])
        [(_, taken)] = await backlog.claim(NOW, LATER, 9)
        await backlog.settle(taken, Outcome(State.WAITING, NOW + 5 * SECOND), 503, NOW)
        assert await backlog.claim(NOW + 4 * SECOND, LATER, 9) == []
        [(_, again)] = await backlog.claim(NOW + 5 * SECOND, LATER, 9)
        assert (again.attempts, again.status, again.state, again.body) == (1, 503, State.WAITING, b"e")

    async def test_who_is_gone_is_sent_nothing_more(self, backlog: Backlog) -> None:
        await backlog.add(webhook())
        await backlog.enqueue([delivery("e"), delivery("f")])
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
        await backlog.enqueue([delivery("e"), delivery("f"), delivery("g"), delivery("e", tenant="other")])
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
        await backlog.enqueue([delivery("e"), delivery("f"), delivery("g")])
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
        await backlog.enqueue([delivery("e"), delivery("f")])
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
