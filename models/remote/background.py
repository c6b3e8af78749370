"""One daemon thread with an event loop, so that a synchronous engine can have many calls under way.

Threads that each wait for one call could not be called back when the server is found to be down, and the
interpreter would wait for them at its end; here a failed batch ends all its calls at once.
"""

import asyncio
import concurrent.futures
import threading
import weakref
from collections.abc import Coroutine
from typing import Any, TypeVar

from models.reader import ReaderUnavailable

T = TypeVar("T")

STOPS_WITHIN = 5.0  # seconds


class Background:
    """Runs coroutines for callers that cannot await; from any thread but its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=_serve, args=(self._loop,), name="remote", daemon=True)
        self._thread.start()
        # Whoever forgets to close an engine leaves no thread behind.
        self._stop = weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)

    def run(self, work: Coroutine[Any, Any, T], within: float) -> T:
        """What `work` returns or raises; after so many seconds it is cancelled, and ReaderUnavailable."""
        with self._lock:  # what comes in before the stop is cancelled by it, and nothing comes in after
            if not self._stop.alive:
                work.close()
                raise ReaderUnavailable("the remote reader is closed")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout=within)
        except concurrent.futures.TimeoutError:
            raise ReaderUnavailable(f"not read whole within {within:g} s") from None
        except concurrent.futures.CancelledError:
            raise ReaderUnavailable("the remote reader was closed") from None
        finally:
            future.cancel()

    def close(self) -> None:
        """Stop the loop and wait for its thread; twice is once."""
        with self._lock:
            self._stop()
        self._thread.join(STOPS_WITHIN)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        for task in (left := asyncio.all_tasks(loop)):
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()
