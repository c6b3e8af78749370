"""Attempts against a real receiver, which checks signatures with the public library."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from aiohttp import web
from standardwebhooks import Webhook

from stream.webhooks import sending
from stream.webhooks.schedule import Answer
from stream.webhooks.sending import Attempts, attempting, payload
from stream.webhooks.signing import new_secret

EVENT = msgspec.json.encode(
    {
        "specversion": "1.0",
        "id": "9f2c",
        "type": "volteface.stance.flipped",
        "time": "2026-11-29T20:14:05.120Z",
        "data": {"holder": "u-18", "rationale": "¿por qué? 你好"},
    }
)


class Receiver:
    """Believes what is signed with its secret, and answers as it is told to."""

    def __init__(self) -> None:
        self.secret = new_secret()
        self.received: list[Any] = []
        self.status, self.headers = 204, dict[str, str]()
        self.url = ""
        self.waits = asyncio.Event()
        self.waits.set()

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.received.append(Webhook(self.secret).verify(body, dict(request.headers)))
        await self.waits.wait()
        return web.Response(status=self.status, headers=self.headers)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    app = web.Application()
    app.router.add_post("/in", made.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        await web.SockSite(runner, listening).start()
        made.url = f"http://127.0.0.1:{listening.getsockname()[1]}/in"
        yield made
        await runner.cleanup()


@pytest.fixture
async def attempts() -> AsyncIterator[Attempts]:
    async with attempting(private=True) as made:
        yield made


def test_a_payload_holds_the_event_as_it_stands() -> None:
    body = payload(EVENT)
    found = msgspec.json.decode(body)
    assert (found["type"], found["timestamp"]) == ("volteface.stance.flipped", "2026-11-29T20:14:05.120Z")
    assert EVENT in body
    assert found["data"] == msgspec.json.decode(EVENT)


async def test_a_receiver_believes_and_reads_it(receiver: Receiver, attempts: Attempts) -> None:
    answer = await attempts.make(receiver.url, [receiver.secret], "9f2c", payload(EVENT))
    assert answer == Answer(204)
    assert receiver.received[0]["data"] == msgspec.json.decode(EVENT)


async def test_what_it_says_comes_back(receiver: Receiver, attempts: Attempts) -> None:
    receiver.status, receiver.headers = 429, {"Retry-After": "17"}
    assert await attempts.make(receiver.url, [receiver.secret], "9f2c", payload(EVENT)) == Answer(429, "17")


async def test_a_redirect_is_not_followed(receiver: Receiver, attempts: Attempts) -> None:
    receiver.status, receiver.headers = 307, {"Location": receiver.url}
    answer = await attempts.make(receiver.url, [receiver.secret], "9f2c", payload(EVENT))
    assert (answer, len(receiver.received)) == (Answer(307), 1)


async def test_one_who_does_not_answer_is_given_up(
    receiver: Receiver, attempts: Attempts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "ATTEMPT_SECONDS", 0.2)
    receiver.waits.clear()
    answer = await attempts.make(receiver.url, [receiver.secret], "9f2c", payload(EVENT))
    receiver.waits.set()
    assert answer == Answer(None)


async def test_nobody_is_there(attempts: Attempts) -> None:
    assert await attempts.make("http://127.0.0.1:1/in", [new_secret()], "9f2c", b"{}") == Answer(None)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_the_machine_itself_is_no_receiver(receiver: Receiver, host: str) -> None:
    url = receiver.url.replace("http://127.0.0.1", f"https://{host}")
    async with attempting() as careful:
        assert await careful.make(url, [receiver.secret], "9f2c", payload(EVENT)) == Answer(None)
    assert not receiver.received
