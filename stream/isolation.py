"""Asking a reader for many at once, and finding the one that it cannot read or that breaks its engine."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from models.execution import PROBE, EngineFailed
from models.reader import Reader, ReaderRejected, ReaderUnavailable
from tracker.conversation import WrongObservation

ATTEMPTS = 5  # with a record that breaks the engine
PAUSE_SECONDS = 0.2  # after the first of them, then longer each time

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Isolation:
    """Asks a reader for all items at once; where that fails, for each half, to find which one to refuse."""

    reader: Reader
    attempts: int

    async def each(
        self,
        items: list[_Item],
        ask: Callable[[list[_Item]], Awaitable[None]],
        refuse: Callable[[_Item, str], None],
        attempt: int = 1,
    ) -> None:
        """Ask for the items; those that cannot be read are refused. Raises ReaderUnavailable."""
        try:
            await ask(items)
            return
        except WrongObservation as wrong:  # the reader mixed answers up; a turn is never refused for that
            raise ReaderUnavailable(str(wrong)) from wrong
        except ReaderRejected as rejected:
            why = str(rejected)
        except EngineFailed as failed:
            if not await self._reads():
                raise  # it breaks on everything: no record's fault
            why = f"{failed}, {self.attempts} times"
            if len(items) == 1 and attempt < self.attempts:
                await asyncio.sleep(PAUSE_SECONDS * attempt)
                await self.each(items, ask, refuse, attempt + 1)
                return
        if len(items) == 1:
            refuse(items[0], why)
            return
        middle = len(items) // 2
        for half in (items[:middle], items[middle:]):
            await self.each(half, ask, refuse)

    async def _reads(self) -> bool:
        """Whether a harmless turn is read now."""
        try:
            await self.reader.observe([PROBE])
        except (ReaderUnavailable, ReaderRejected):
            return False
        return True
