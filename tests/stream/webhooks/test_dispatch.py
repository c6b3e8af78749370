import asyncio
import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from stream.webhooks.dispatch import LEASE, Dispatcher, deliveries
from stream.webhooks.memory import MemoryBacklog
from stream.webhooks.port import Status
from stream.webhooks.schedule import WAITS, Answer
from stream.webhooks.signing import BadSecret
from tests.stream.webhooks.test_backlog_contract import NOW, webhook


def event(ident: str, kind: str = "flipped", conversation: str = "room", **fields: Any) -> bytes:
    made = {"id": ident, "type": f"volteface.stance.{kind}", "time": "2026-12-01T12:00:00Z"}
    data = {"tenant": fields.pop("tenant", "acme"), "conversation": conversation}
    return msgspec.json.encode({**made, **fields, "data": data})


class Receivers:
    """Answers as it is told, and notes what it was sent."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.seen = list(answers), list[tuple[str, Any]]()

    async def make(self, url: str, secrets: Sequence[str], ident: str, body: bytes) -> Answer:
        self.seen.append((ident, msgspec.json.decode(body)["data"]["id"]))
        return self.answers.pop(0) if self.answers else Answer(204)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> dt.datetime:
        return self.now


@pytest.mark.parametrize(
    ("changes", "sent"),
    [
        ({}, ["flip", "taken back"]),
        ({"types": ("volteface.stance.established",)}, ["begin"]),
        ({"conversations": ("other",)}, ["elsewhere"]),
        ({"status": Status.DISABLED}, []),
    ],
)
def test_each_is_sent_what_it_wants(changes: dict[str, Any], sent: list[str]) -> None:
    events = [
        event("flip", previous="1"), event("begin", "established"),
        event("taken back", "retracted", previous="2"), event("begin taken back", "retracted"),
        event("elsewhere", conversation="other"),
    ]  # fmt: skip
    if "conversations" not in changes:
        events.pop()
    made = list(deliveries(events, [replace(webhook(), **changes)], NOW))
    assert [each.event for each in made] == sent
    assert all((each.tenant, each.webhook, each.due) == ("acme", "w1", NOW) for each in made)


@pytest.fixture
async def backlog() -> MemoryBacklog:
    made = MemoryBacklog()
    await made.add(webhook())
    await made.advance(webhook(), 2, list(deliveries([event("e1"), event("e2")], [webhook()], NOW)))
    return made


async def test_what_is_due_is_sent_once(backlog: MemoryBacklog) -> None:
    receivers = Receivers()
    dispatcher = Dispatcher(backlog, receivers, Clock())
    assert [await dispatcher.once(), await dispatcher.once()] == [2, 0]
    assert sorted(receivers.seen) == [("e1", "e1"), ("e2", "e2")]


async def test_an_attempt_that_fails_is_made_again_on_the_schedule(backlog: MemoryBacklog) -> None:
    clock, receivers = Clock(), Receivers(*[Answer(500)] * 20)
    dispatcher = Dispatcher(backlog, receivers, clock, lambda: 0.0)
    assert await dispatcher.once() == 2
    for wait in WAITS:
        clock.now += dt.timedelta(seconds=wait - 1)
        assert await dispatcher.once() == 0
        clock.now += dt.timedelta(seconds=1)
        assert await dispatcher.once() == 2
    clock.now += dt.timedelta(days=9)
    assert await dispatcher.once() == 0
    assert [each.event for each in await backlog.failed("acme", "w1", "", 9)] == ["e1", "e2"]


async def test_what_a_sender_that_ended_had_taken_is_sent_by_another(backlog: MemoryBacklog) -> None:
    clock, receivers = Clock(), Receivers()
    await backlog.claim(clock.now, clock.now + LEASE, 9)
    assert await Dispatcher(backlog, receivers, clock).once() == 0
    clock.now += LEASE
    assert await Dispatcher(backlog, receivers, clock).once() == 2


def test_no_tenant_is_sent_anothers_events() -> None:
    theirs = event("e3", tenant="other")
    assert list(deliveries([theirs], [webhook()], NOW)) == []
    assert [each.tenant for each in deliveries([theirs], [webhook(), webhook("w1", "other")], NOW)] == [
        "other"
    ]


async def test_a_bad_secret_ends_nobody_elses_attempts(backlog: MemoryBacklog) -> None:
    class Refusing(Receivers):
        async def make(self, url: str, secrets: Sequence[str], ident: str, body: bytes) -> Answer:
            if ident == "e1":
                raise BadSecret("none")
            return await super().make(url, secrets, ident, body)

    receivers = Refusing()
    assert await Dispatcher(backlog, receivers, Clock()).once() == 2
    assert receivers.seen == [("e2", "e2")]


async def test_two_senders_send_each_once(backlog: MemoryBacklog) -> None:
    receivers, clock = Receivers(), Clock()
    made = await asyncio.gather(*(Dispatcher(backlog, receivers, clock).once() for _ in range(4)))
    assert (sum(made), len(receivers.seen)) == (2, 2)
