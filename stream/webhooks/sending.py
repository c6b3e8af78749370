"""One attempt to deliver an event: signed, bounded in time and size, and never led elsewhere."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from stream.webhooks import guard, signing
from stream.webhooks.schedule import Answer

ATTEMPT_SECONDS = 20.0  # the specification has 15 to 30
CONNECTIONS = 32  # at a time, and to one host
A_HOST = 8
ANSWER_BYTES = 4096  # that are read, so that the connection can be used again


class _Event(msgspec.Struct):
    """What a payload needs of a CloudEvent."""

    type: str
    time: msgspec.Raw


class _Payload(msgspec.Struct):
    type: str
    timestamp: msgspec.Raw
    data: msgspec.Raw


def payload(event: bytes) -> bytes:
    """What a receiver gets of an event: its type, its time, and in `data` the CloudEvent as it stands."""
    read = msgspec.json.decode(event, type=_Event)
    return msgspec.json.encode(_Payload(read.type, read.time, msgspec.Raw(event)))


class Attempts:
    """Makes attempts; made by `attempting`."""

    def __init__(self, session: aiohttp.ClientSession, *, private: bool) -> None:
        self._session, self._private = session, private

    async def make(self, url: str, secrets: Sequence[str], ident: str, body: bytes) -> Answer:
        """How the receiver answered; no answer, too, where it may not be sent to. Raises BadSecret."""
        signed = signing.headers(secrets, ident, int(time.time()), body)
        try:
            address = guard.check(url, private=self._private)
            async with (
                asyncio.timeout(ATTEMPT_SECONDS),
                self._session.post(address, data=body, headers=signed, allow_redirects=False) as response,
            ):
                await response.content.read(ANSWER_BYTES)
                return Answer(response.status, response.headers.get("retry-after"))
        except (aiohttp.ClientError, guard.Forbidden, TimeoutError, OSError):
            return Answer(None)


@asynccontextmanager
async def attempting(*, private: bool = False) -> AsyncIterator[Attempts]:
    """Attempts while the block runs; `private` as in `guard.check`."""
    resolver = aiohttp.ThreadedResolver() if private else guard.PublicResolver()
    # Without a cache: an address that was public a minute ago may be another now.
    connector = aiohttp.TCPConnector(
        resolver=resolver, use_dns_cache=False, limit=CONNECTIONS, limit_per_host=A_HOST
    )
    agent = {"user-agent": "volteface-webhooks"}
    async with aiohttp.ClientSession(
        connector=connector, headers=agent, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
    ) as session:
        yield Attempts(session, private=private)
