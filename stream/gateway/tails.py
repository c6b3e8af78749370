"""The newest events of each tenant that somebody follows, read once for all of its subscribers.

A subscriber asks for what comes behind its position. What the tail holds is answered from it, anything older
from the views, so that nobody needs a buffer of its own: who is slow falls behind, reads from the views, and
misses nothing.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile

import msgspec
import structlog

from stream.database.engine import DatabaseUnavailable
from stream.entries import Unreadable
from stream.topics import Name
from stream.views.port import Filter, StoredEvent, Told, Views
from stream.views.reading import entry_of
from tracker.alert_events import AlertType
from tracker.events import EventType

log = structlog.get_logger(__name__)

ALERTS = frozenset(map(str, AlertType))
LONGEST = 2000  # events of a tenant
PAGE = 200
POLL_SECONDS = 0.2
AWAY_SECONDS = 1.0


class _Typed(msgspec.Struct):
    type: str


class Seen(msgspec.Struct, frozen=True):
    """An event at its position, with what filters ask of it."""

    position: int
    told: Told

    def meets(self, where: Filter) -> bool:
        """Whether it is among the events that a filter lets through."""
        told = self.told
        return (
            where.conversation in {None, told.conversation}
            and where.holder in {None, told.holder}
            and where.target in {None, told.target}
            and where.trigger in {None, told.trigger}
            and (not where.types or told.type in where.types)
            and (told.flip or not where.flips)
        )


_typed = msgspec.json.Decoder(_Typed)


def seen(run: str, stored: StoredEvent) -> Seen:
    """A stored event, looked into as the feeder looked into it. Raises Unreadable."""
    name: Name = "alerts" if _typed.decode(stored.body).type in ALERTS else "stances"
    found = entry_of(name, run, None, stored.body)
    assert isinstance(found, Told)
    return Seen(stored.position, found)


class Tail:
    """A tenant's newest events: all those with a position above `start`, up to `latest`."""

    def __init__(self, tenant: str, start: int) -> None:
        self.tenant, self.start, self.latest = tenant, start, start
        self.followers = 0
        self._events: deque[Seen] = deque()
        self._moved = asyncio.Event()

    def extend(self, found: list[Seen], latest: int) -> None:
        """Take all newer events up to a position, let go of the oldest, and wake who waits.

        Somebody forgotten takes with it all that came before: it may name or quote the person.
        """
        for event in found:
            if event.told.type == EventType.FORGOTTEN:
                self._events.clear()
                self.start = event.position - 1
            self._events.append(event)
        self.latest = latest
        while len(self._events) > LONGEST:
            self.start = self._events.popleft().position
        self.wake()

    def wake(self) -> None:
        """Have everybody look again."""
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def behind(self, position: int, where: Filter, most: int) -> tuple[list[Seen], int]:
        """Events behind a position that is not before `start`, and the position up to which that is all."""
        found = list[Seen]()
        for event in self._newer(position):
            if event.meets(where):
                found.append(event)
                if len(found) == most:
                    return found, event.position
        return found, max(position, self.latest)

    def _newer(self, position: int) -> list[Seen]:
        newer = list(takewhile(lambda event: event.position > position, reversed(self._events)))
        return newer[::-1]

    async def moved(self, position: int, seconds: float) -> None:
        """Wait until there is something behind a position, somebody wakes, or time is up."""
        if self.latest <= position:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._moved.wait()


class Tails:
    """The tails of all tenants that are followed."""

    def __init__(self, views: Views, run: str) -> None:
        self._views, self._run = views, run
        self._tails: dict[str, Tail] = {}
        self._due = asyncio.Event()
        self.closing = False

    @contextmanager
    def following(self, tenant: str, latest: int) -> Iterator[Tail]:
        """A tenant's tail, kept for as long as the block runs; `latest`: the newest position just now."""
        tail = self._tails.setdefault(tenant, Tail(tenant, latest))
        tail.followers += 1
        try:
            yield tail
        finally:
            tail.followers -= 1
            if not tail.followers:
                self._tails.pop(tenant, None)

    async def read(
        self, tail: Tail, position: int, where: Filter, most: int = PAGE
    ) -> tuple[list[Seen], int]:
        """Events behind a position, and up to where that is all of them. Raises DatabaseUnavailable."""
        if position >= tail.start:
            return tail.behind(position, where, most)
        upto = tail.latest
        stored = await self._events(tail.tenant, position, where, most)
        found = [*self._readable(stored)]
        if len(stored) == most:
            return found, stored[-1].position
        return found, max([upto, *(each.position for each in stored)])

    def _readable(self, stored: Iterable[StoredEvent]) -> Iterator[Seen]:
        """What is no event of this run's is passed, and ends nobody's stream."""
        for each in stored:
            try:
                yield seen(self._run, each)
            except (Unreadable, msgspec.MsgspecError) as error:
                log.error("gateway.unreadable", position=each.position, error=type(error).__name__)

    async def _events(self, tenant: str, position: int, where: Filter, most: int) -> list[StoredEvent]:
        return await self._views.events(tenant, where, after=position, limit=most)

    def told(self) -> None:
        """Look for new events at once: somebody has just put some."""
        self._due.set()

    def close(self) -> None:
        """Have every subscriber end."""
        self.closing = True
        for tail in self._tails.values():
            tail.wake()

    async def run(self) -> None:
        """Read what is new, until cancelled."""
        while True:
            pause = POLL_SECONDS
            try:
                for tail in list(self._tails.values()):
                    await self._extend(tail)
            except DatabaseUnavailable as error:
                log.warning("gateway.tails_away", error=str(error))
                pause = AWAY_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._due.wait()
            self._due.clear()

    async def _extend(self, tail: Tail) -> None:
        while found := await self._events(tail.tenant, tail.latest, Filter(), PAGE):
            tail.extend([*self._readable(found)], found[-1].position)
            if len(found) < PAGE:
                return
