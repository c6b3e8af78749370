"""One worker's HTTP connections. A session is made inside the loop that uses it, never at import."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from yarl import URL

from models.reader import ReaderUnavailable
from models.worker import wire


class Faulty(ReaderUnavailable):
    """The worker, or the way to it, failed: it counts toward opening the circuit."""

    def __init__(self, message: str, *, again: bool, retry_after: float | None = None) -> None:
        super().__init__(message, 1.0 if retry_after is None else retry_after)
        self.again = again  # whether another attempt may help
        self.asked_wait = retry_after  # seconds that the worker asked for, if it did


@dataclass(frozen=True)
class Reply:
    """An HTTP answer, whole."""

    status: int
    body: bytes
    retry_after: float | None  # seconds


@dataclass
class _Link:
    loop: asyncio.AbstractEventLoop
    session: aiohttp.ClientSession


class Channel:
    """POSTs to a worker, or another server, over at most `connections` kept connections."""

    def __init__(
        self,
        url: str,
        *,
        connections: int,
        connect_timeout: float,
        answer_bytes: int,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._url = URL(url)
        if self._url.scheme not in {"http", "https"} or not self._url.host:
            # Without the address, which may hold a password.
            raise ValueError(f"an address begins with http:// or https://, this with {self._url.scheme!r}")
        self._connections = connections
        self._connect_timeout = connect_timeout
        self._answer_bytes = answer_bytes
        self._headers = {"Content-Type": wire.JSON, **(headers or {})}
        self._link: _Link | None = None
        self._closed_in: asyncio.AbstractEventLoop | None = None

    async def post(self, path: str, body: bytes, *, within: float) -> Reply:
        """The worker's answer. Raises Faulty, or ReaderUnavailable where the channel was closed."""
        session = await self._session()
        try:
            async with session.post(
                self._url.joinpath(path.lstrip("/")),
                data=body,
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=within, sock_connect=self._connect_timeout),
                allow_redirects=False,
            ) as response:
                read = await self._read(response)
                return Reply(response.status, read, _seconds(response.headers.get("Retry-After")))
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
            # Reading changes nothing, so a call whose answer was lost may be asked again.
            raise Faulty(f"no connection: {type(error).__name__}", again=True) from error
        except TimeoutError:
            raise Faulty(f"no answer within {within:.1f} s", again=False) from None
        except aiohttp.ClientError as error:
            raise Faulty(f"no HTTP answer: {type(error).__name__}", again=False) from error

    async def close(self) -> None:
        """Close the connections; calls under way end as Faulty, later ones in this loop are refused."""
        self._closed_in = asyncio.get_running_loop()
        if self._link is not None:
            await self._link.session.close()

    async def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._closed_in is loop:
            raise ReaderUnavailable("the reader is closed")
        if self._link is not None and self._link.loop is not loop:
            if not self._link.loop.is_closed():
                raise RuntimeError("a reader serves one event loop at a time: close it in the other first")
            await self._link.session.close()
            self._link = None
        if self._link is None:
            connector = aiohttp.TCPConnector(limit=self._connections)
            self._link = _Link(loop, aiohttp.ClientSession(connector=connector))
        return self._link.session

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        read = bytearray()
        async for chunk in response.content.iter_any():
            read += chunk
            if len(read) > self._answer_bytes:
                raise Faulty(f"an answer of more than {self._answer_bytes} bytes", again=False)
        return bytes(read)


def _seconds(header: str | None) -> float | None:
    # The other form, a date, compares two machines' clocks: not worth trusting for a pause.
    return float(header) if header is not None and header.isascii() and header.isdigit() else None
