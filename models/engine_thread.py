"""One daemon thread that owns an engine: made there, called there, never on the event loop.

Not a ThreadPoolExecutor: the interpreter joins its threads at exit, and a model call that hangs would keep
a stopped process alive for ever.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

_Work = tuple[Callable[[], Any], "Future[Any]"]


class EngineBusy(RuntimeError):
    """As many calls wait for the thread as it takes."""


class EngineClosed(RuntimeError):
    """The thread takes no more calls."""


class EngineThread:
    """Runs calls one after the other. At most `waiting` wait, cancelled ones included."""

    def __init__(self, *, waiting: int = 32, name: str = "engine") -> None:
        self._work: queue.Queue[_Work | None] = queue.Queue(maxsize=waiting)
        self._thread = _Thread(target=self._run, name=name, daemon=True)
        self._lock = threading.Lock()
        self._ended: Future[None] = Future()
        self._closed = False
        self._busy_since: float | None = None

    async def call(self, work: Callable[[], T], *, within: float) -> T:
        """What `work` returns or raises, or TimeoutError after so many seconds; a late result is dropped."""
        async with asyncio.timeout(within):
            return await asyncio.wrap_future(self._submit(work))

    @property
    def running_for(self) -> float:
        """Seconds that the call now running has run; 0 where none runs."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    async def close(self, grace: float = 1.0) -> bool:
        """Refuse what waits, let the running call end; whether it ended within `grace` seconds."""
        with self._lock:
            self._closed = True
            self._refuse_waiting()
            self._work.put_nowait(None)
            started = self._thread.ident is not None
        if not started:
            return True
        ended = asyncio.wrap_future(self._ended)
        await asyncio.wait({ended}, timeout=grace)
        return ended.done()

    def _submit(self, work: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise EngineClosed("the engine's thread is closed")
            try:
                self._work.put_nowait((work, future))
            except queue.Full:
                raise EngineBusy(f"{self._work.maxsize} calls wait for the engine") from None
            if self._thread.ident is None:
                self._thread.start()
        return future

    def _refuse_waiting(self) -> None:
        while not self._work.empty():
            try:
                waiting = self._work.get_nowait()
            except queue.Empty:  # the thread was faster
                return
            if waiting is not None and waiting[1].set_running_or_notify_cancel():
                waiting[1].set_exception(EngineClosed("the engine's thread was closed"))

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            work, future = item
            if future.set_running_or_notify_cancel():
                self._busy_since = time.monotonic()
                settle = _run_for(work, future)
                self._busy_since = None  # first: whoever gets the answer must find the thread free
                settle()
                del settle
            del item, work, future  # an idle thread holds no request's text
        self._ended.set_result(None)


class _Thread(threading.Thread):
    """A thread of ours, to be told from others."""


def left_running() -> bool:
    """Whether an engine's thread still lives: then a process must end by os._exit.

    An interpreter that ends under a thread inside torch aborts, and its exit status is lost.
    """
    return any(isinstance(thread, _Thread) for thread in threading.enumerate())


def _run_for(work: Callable[[], Any], future: "Future[Any]") -> Callable[[], None]:
    """Run the work; gives what tells the future of it."""
    try:
        return partial(future.set_result, work())
    except BaseException as error:
        return partial(future.set_exception, error)
