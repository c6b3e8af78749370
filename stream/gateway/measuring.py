"""The layers around the routes, as plain ASGI, so that streams stay streams.

One counts answers and catches what nobody caught, one keeps bodies within their limits.
"""

import asyncio
from time import monotonic

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from models.tracebacks import frames
from stream.gateway.metrics import GatewayMetrics
from stream.gateway.problems import Kind, Problem

log = structlog.get_logger(__name__)

READ_ON = 16  # times the largest body, of one that is too large
_CLOSE = {"Connection": "close"}  # what is left of the body is not read
_METHODS = frozenset({"GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"})


class Measuring:
    """Counts answers by the route's pattern, never by the address, which may name people."""

    def __init__(self, app: ASGIApp, metrics: GatewayMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = monotonic()
        method = scope["method"] if scope["method"] in _METHODS else "other"

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "none")
                self._metrics.answered.labels(route, method, str(message["status"])).inc()
                self._metrics.seconds.labels(route, method).observe(monotonic() - started)
            await send(message)

        try:
            await self._app(scope, receive, counted)
        except Exception as error:  # its answer is sent, or can be no more
            log.error("gateway.call_failed", error=type(error).__name__, frames=frames(error))


class Bodies:
    """Takes a body only so large, and waits for it only so long: who sends it byte by byte holds nothing."""

    def __init__(self, app: ASGIApp, most: int, seconds: float) -> None:
        self._app, self._most, self._seconds = app, most, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http":
            receive = _Body(receive, self._most, self._seconds, Headers(scope=scope)).receive
        await self._app(scope, receive, send)


class _Body:
    def __init__(self, receive: Receive, most: int, seconds: float, headers: Headers) -> None:
        self._receive, self._most, self._seconds = receive, most, seconds
        said = headers.get("content-length", "")
        self._promised = int(said) if said.isascii() and said.isdecimal() else 0
        self._until, self._size, self._whole = monotonic() + seconds, 0, False

    async def receive(self) -> Message:
        """The next part. Raises Problem."""
        if self._whole:  # from here on one only waits for the client to go
            return await self._receive()
        if self._promised > READ_ON * self._most:
            raise self._too_large()
        message = await self._part()
        if self._size > self._most:
            # Who still sends when the connection closes would see that alone, and not the answer.
            while not self._whole and self._size <= READ_ON * self._most:
                await self._part()
            raise self._too_large()
        return message

    async def _part(self) -> Message:
        try:
            async with asyncio.timeout(self._until - monotonic()):
                message = await self._receive()
        except TimeoutError:
            said = f"no whole body within {self._seconds:g} s"
            raise Problem(Kind.SLOW_BODY, said, headers=_CLOSE) from None
        self._size += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        return message

    def _too_large(self) -> Problem:
        said, remedy = f"a body has at most {self._most} bytes", "send the records in several requests"
        return Problem(Kind.TOO_LARGE, said, field="body", remedy=remedy, headers=_CLOSE)
