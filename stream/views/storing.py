"""Messages into the views: decoded, stored together, and alone where the database refuses them together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from stream.entries import Unreadable
from stream.topics import Name
from stream.views.port import Batch, Entry, Offsets, Views
from stream.views.reading import entry_of

log = structlog.get_logger(__name__)

# What a store says of an entry that it will never take; that it is away is another error.
Refusals = (SQLAlchemyError, ArithmeticError, ValueError)


@dataclass(slots=True)
class Counts:
    """What was stored, and what was passed since it is none of ours or no database takes it."""

    messages: int = 0
    refused: int = 0


class Storing:
    """Stores messages of a run's topics, and counts them."""

    def __init__(self, run: str, views: Views) -> None:
        self.counts = Counts()
        self._run, self._views = run, views

    def entries(self, name: Name, messages: Sequence[Any]) -> Iterator[Entry]:
        """The entries of messages; those that are none are counted, told and passed."""
        for message in messages:
            self.counts.messages += 1
            try:
                yield entry_of(name, self._run, message.key, message.value)
            except Unreadable as error:
                place = {"partition": message.partition, "offset": message.offset}
                self._refuse(topic=message.topic, error=str(error), **place)

    async def put(self, entries: Sequence[Entry], offsets: Offsets) -> bool:
        """Store entries and offsets; whether there are new events. Raises DatabaseUnavailable."""
        try:
            return bool(await self._views.put(Batch(entries, offsets)))
        except Refusals as error:
            log.warning("views.batch_refused", entries=len(entries), error=type(error).__name__)
        moved = False
        for entry in entries:
            moved |= await self._put_alone(entry)
        await self._views.put(Batch((), offsets))
        return moved

    async def _put_alone(self, entry: Entry) -> bool:
        try:
            return bool(await self._views.put(Batch([entry])))
        except Refusals as error:
            self._refuse(kind=type(entry).__name__, error=type(getattr(error, "orig", error)).__name__)
            return False

    def _refuse(self, **about: Any) -> None:
        self.counts.refused += 1
        log.error("views.message_refused", **about)
