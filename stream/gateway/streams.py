"""Server-sent events (WHATWG HTML, 9.2): every event once, however often one resumes.

The SSE id is the event's position. A stream begins with `volteface.open`, whose id is where it begins;
between events that are long in coming stand comments. If it ends on our side, its last word is
`volteface.dropped` with the reason: slow, revoked or closing. What cannot be resumed exactly begins with
`volteface.gap`.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from time import monotonic

import msgspec
import structlog
from fastapi.sse import format_sse_event
from starlette.responses import StreamingResponse
from starlette.types import Send

from stream.database.engine import DatabaseUnavailable
from stream.gateway.parts import Parts
from stream.gateway.tails import Seen, Tail
from stream.views.port import Filter

log = structlog.get_logger(__name__)

MEDIA_TYPE = "text/event-stream"
OPEN, GAP, DROPPED = "volteface.open", "volteface.gap", "volteface.dropped"
RECONNECT_MS = 1000
AWAY_SECONDS = 1.0
_HEARTBEAT = b": heartbeat\n"  # behind an empty line some clients, httpx-sse among them, see an empty event
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

StillHolds = Callable[[], Awaitable[bool]]


class Beginning(msgspec.Struct, frozen=True):
    """Where a stream begins: behind a position; `missed` is one that was asked for and never was."""

    latest: int
    position: int
    missed: int | None = None

    def said(self) -> bytes:
        """The first words of the stream."""
        opened = _word(OPEN, self.position, {"position": self.position}, retry=RECONNECT_MS)
        if self.missed is None:
            return opened
        detail = "no event has had this position; all that is kept follows, drop the ids that you have seen"
        told = {"asked": self.missed, "position": self.position, "detail": detail}
        return opened + _word(GAP, self.position, told)


async def beginning(parts: Parts, tenant: str, asked: int | None) -> Beginning:
    """Where to begin: behind the position asked for, or now. Raises DatabaseUnavailable.

    A position that no event has had yet is of other events than these (of a database made anew since): then
    all that is kept comes.
    """
    latest = await parts.views.latest(tenant)
    if asked is None:
        return Beginning(latest, latest)
    return Beginning(latest, asked) if asked <= latest else Beginning(latest, 0, asked)


class Subscription:
    """What one subscriber is sent: a page is read when the one before was taken."""

    def __init__(self, parts: Parts, tail: Tail, where: Filter, position: int, still: StillHolds) -> None:
        self._parts, self._tail, self._where, self._still = parts, tail, where, still
        self._position = position
        self.slow = False
        self.ended = "gone"

    async def chunks(self, opening: bytes) -> AsyncGenerator[bytes, None]:
        """What is sent, piece by piece, to the last word."""
        yield opening
        beat, sent, checked = self._parts.limits.heartbeat, monotonic(), monotonic()
        while not (reason := self._reason()):
            if monotonic() - checked >= beat:
                if not await self._still():
                    reason = "revoked"
                    break
                checked = monotonic()
            if page := await self._page():
                yield page
                sent = monotonic()
            elif (left := beat - (monotonic() - sent)) > 0:
                await self._tail.moved(self._position, left)
            else:
                yield _HEARTBEAT
                sent = monotonic()
        self.ended = reason
        yield _word(DROPPED, self._position, {"reason": reason, "position": self._position})

    def _reason(self) -> str | None:
        if self._parts.tails.closing:
            return "closing"
        return "slow" if self.slow else None

    async def _page(self) -> bytes:
        try:
            found, self._position = await self._parts.tails.read(self._tail, self._position, self._where)
        except DatabaseUnavailable as error:  # a later try finds the same events
            log.warning("gateway.stream_waits", error=str(error))
            await asyncio.sleep(AWAY_SECONDS)
            return b""
        self._parts.metrics.sent.inc(len(found))
        return b"".join(map(_event, found))


class EventStream(StreamingResponse):
    """The response that a subscription is."""

    def __init__(
        self, parts: Parts, tenant: str, key: str, where: Filter, begin: Beginning, still: StillHolds
    ) -> None:
        super().__init__(iter(()), headers=_HEADERS, media_type=MEDIA_TYPE)
        self._parts, self._tenant, self._key = parts, tenant, key
        self._where, self._begin, self._still = where, begin, still

    async def stream_response(self, send: Send) -> None:
        """Send all there is, for as long as the subscriber takes it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        with self._parts.tails.following(self._tenant, self._begin.latest) as tail:
            position = self._begin.position
            subscription = Subscription(self._parts, tail, self._where, position, self._still)
            with self._counted(subscription):
                taken = await self._send(subscription, send)
        if taken:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, subscription: Subscription, send: Send) -> bool:
        """Send to the last word; False where the subscriber takes nothing any more."""
        limits = self._parts.limits
        async with aclosing(subscription.chunks(self._begin.said())) as chunks:
            async for chunk in chunks:
                began = monotonic()
                try:
                    async with asyncio.timeout(limits.stuck):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
                except TimeoutError:
                    subscription.ended = "stuck"
                    return False
                subscription.slow |= monotonic() - began > limits.slow
        return True

    @contextmanager
    def _counted(self, subscription: Subscription) -> Iterator[None]:
        metrics, streams = self._parts.metrics, self._parts.streams
        metrics.streams.inc()
        streams[self._key] += 1
        try:
            yield
        finally:
            metrics.streams.dec()
            streams[self._key] -= 1
            metrics.ended.labels(subscription.ended).inc()


def _word(event: str, position: int, data: object, *, retry: int | None = None) -> bytes:
    text = msgspec.json.encode(data).decode()
    return format_sse_event(event=event, id=str(position), data_str=text, retry=retry)


def _event(seen: Seen) -> bytes:
    return format_sse_event(event=seen.told.type, id=str(seen.position), data_str=seen.told.body.decode())
