"""How often a server may be asked: calls evenly spread over a minute, and none while it asked for quiet."""

import asyncio
from time import monotonic

from models.reader import ReaderUnavailable

MINUTE = 60.0


class Pace:
    """Gives each call its moment, in order; one event loop's."""

    def __init__(self, per_minute: int | None) -> None:
        self._gap = MINUTE / per_minute if per_minute else 0.0
        self._next = self._quiet = 0.0
        self._first = asyncio.Lock()  # whoever is cancelled in its line leaves no gap behind

    async def turn(self, patience: float) -> float:
        """Waits for this call's moment; how long. Raises ReaderUnavailable for a quiet beyond `patience`.

        Calls before it are waited for however long they are: that is the pace that was asked for.
        """
        began = monotonic()
        async with self._first:
            # Looked at again after each wait: another call may have been told to be quiet for longer.
            while (wait := max(self._next, self._quiet) - monotonic()) > 0:
                self._check(patience)
                await asyncio.sleep(wait)
            self._next = monotonic() + self._gap
        return monotonic() - began

    def hold(self, seconds: float) -> None:
        """No call for so long: the server said so to one of them, and means all."""
        self._quiet = max(self._quiet, monotonic() + seconds)

    def _check(self, patience: float) -> None:
        if (quiet := self._quiet - monotonic()) >= patience:
            raise ReaderUnavailable("the remote server is asked as often as it may be", quiet)
