"""The Reader port in process: an engine on a thread of its own; the event loop never waits for a model."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import structlog

from models import execution
from models.engine_thread import EngineBusy, EngineClosed, EngineThread
from models.reader import (
    CannotPropose,
    Engine,
    ExplainRequest,
    ObserveRequest,
    Proposer,
    ProposeRequest,
    ReaderUnavailable,
)
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal

Request = TypeVar("Request")
Answer = TypeVar("Answer")

_log = structlog.get_logger(__name__)


class LocalReader:
    """Reads with an engine in this process. Raises what Reader allows, and says which requests were rejected.

    An engine whose `immediate` is true answers at once and is called where the caller stands, without thread.
    """

    def __init__(
        self, engine: Engine, *, timeout: float = 30.0, waiting: int = 32, thread: EngineThread | None = None
    ) -> None:
        self._engine = engine
        self._timeout = timeout
        self._immediate: bool = getattr(engine, "immediate", False)
        self._thread = thread or EngineThread(waiting=waiting)

    @classmethod
    async def load(
        cls,
        factory: Callable[[], Engine],
        *,
        timeout: float = 30.0,  # noqa: ASYNC109 - the reader's, for each of its calls
        waiting: int = 32,
        load_timeout: float = 600.0,
    ) -> "LocalReader":
        """A reader whose engine is made in its thread. Raises what the factory raises, or TimeoutError."""
        thread = EngineThread(waiting=waiting)
        try:
            engine = await thread.call(factory, within=load_timeout)
        except BaseException:
            await thread.close(grace=0)
            raise
        return cls(engine, timeout=timeout, thread=thread)

    async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        return await self._read(partial(execution.observe, self._engine), requests)

    async def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        return await self._read(partial(execution.explain, self._engine), requests)

    async def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        """One proposal a request, in order. Raises CannotPropose where the engine finds no targets."""
        if not isinstance(self._engine, Proposer):
            raise CannotPropose(f"{type(self._engine).__name__} finds no targets")
        return await self._read(partial(execution.propose, self._engine), requests)

    async def proposes(self) -> bool:
        """Whether the engine finds targets."""
        return isinstance(self._engine, Proposer)

    async def close(self) -> None:
        """Close the engine, whose call under way ends by it if it can, and give the thread back.

        One that hangs in its engine is left behind and ends with the process.
        """
        await asyncio.to_thread(execution.close, self._engine)
        if not await self._thread.close():
            _log.warning("reader.thread_left", running_for=round(self._thread.running_for, 1))

    async def _read(
        self, run: Callable[[Sequence[Request]], list[Answer]], requests: Sequence[Request]
    ) -> list[Answer]:
        if not requests:
            return []
        work = partial(execution.execute, run, requests)
        return execution.unwrap(work() if self._immediate else await self._on_thread(work))

    async def _on_thread(
        self, work: "Callable[[], list[execution.Outcome[Answer]]]"
    ) -> "list[execution.Outcome[Answer]]":
        if self._thread.running_for > self._timeout:
            raise ReaderUnavailable("the engine is stuck in an earlier call", self._timeout)
        try:
            return await self._thread.call(work, within=self._timeout)
        except TimeoutError:
            _log.warning("reader.timed_out", timeout=self._timeout)
            raise ReaderUnavailable(f"no answer within {self._timeout} s") from None
        except (EngineBusy, EngineClosed) as error:
            raise ReaderUnavailable(str(error)) from error
