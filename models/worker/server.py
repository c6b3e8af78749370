"""The worker's life: listen, load the engine off the loop, serve, and on SIGTERM drain and end.

It listens before the engine is there, so that a probe can tell a worker that loads from one that is dead.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from models import execution
from models.engine_thread import EngineThread
from models.reader import Engine, ExplainRequest, ObserveRequest, ProposeRequest
from models.worker.app import BodyLimits, make_app
from models.worker.batching import Batcher
from models.worker.lanes import BatchLimits
from models.worker.metrics import WorkerMetrics
from models.worker.wire import Reason, Refusal
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class WorkerConfig:
    """Where a worker listens and what it holds at most. Times are seconds."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: a free one, told when it listens
    body: BodyLimits = field(default_factory=BodyLimits)
    batch: BatchLimits = field(default_factory=BatchLimits)
    load_timeout: float = 900.0
    grace: float = 25.0  # to answer what is queued after SIGTERM; Kubernetes kills after 30

    def __post_init__(self) -> None:
        """Refuse limits under which a permitted call could never be queued."""
        if self.body.requests > self.batch.queued:
            raise ValueError("a call may bring more requests than the queue holds")


class Worker:
    """One engine behind HTTP."""

    def __init__(self, factory: Callable[[], Engine], config: WorkerConfig) -> None:
        self._factory = factory
        self._config = config
        self._metrics = WorkerMetrics(CollectorRegistry())
        self._metrics.watch_depth(lambda: self._batcher.depth if self._batcher else 0)
        self._thread = EngineThread()
        self._batcher: Batcher | None = None
        self._draining = False

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Listens for as long as the block runs; gives the port."""
        app = make_app(self, self._config.body, self._metrics)
        # handler_cancellation: a client that hangs up frees its place in the queue.
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._config.host, self._config.port)
            await site.start()
            _log.info("worker.listening", host=self._config.host, port=site.port)
            yield site.port
        finally:
            await runner.cleanup()

    async def run(self) -> None:
        """Load the engine and read until cancelled. Raises as `serve` says."""
        try:
            engine = await self._thread.call(self._factory, within=self._config.load_timeout)
            await self._read(engine)
        finally:
            await self._thread.close()

    async def _read(self, engine: Engine) -> None:
        self._batcher = Batcher(engine, self._thread, self._config.batch, self._metrics)
        self._metrics.name_engine(engine)
        _log.info("worker.ready", engine=type(engine).__name__)
        try:
            await self._batcher.run()
        finally:
            await asyncio.to_thread(execution.close, engine)

    async def drain(self) -> bool:
        """Refuse new calls and answer the others; whether all were within the grace."""
        self._draining = True
        _log.info("worker.draining", queued=self._batcher.depth if self._batcher else 0)
        drained = self._batcher is None or await self._batcher.drain(self._config.grace)
        _log.info("worker.drained", whole=drained)
        return drained

    @property
    def ill(self) -> Reason | None:
        """Why a call would be refused now, if it would."""
        if self._draining:
            return Reason.DRAINING
        return Reason.LOADING if self._batcher is None else self._batcher.ill

    async def observe(self, requests: list[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        return await self._ready().observe(requests)

    async def explain(self, requests: list[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        return await self._ready().explain(requests)

    async def propose(self, requests: list[ProposeRequest]) -> list[Proposal]:
        """One proposal a request, in order."""
        return await self._ready().propose(requests)

    def _ready(self) -> Batcher:
        if self._batcher is None:
            reason = Reason.DRAINING if self._draining else Reason.LOADING
            raise Refusal(reason, "the engine is not loaded", retry_after=2.0)
        return self._batcher


async def serve(
    factory: Callable[[], Engine],
    config: WorkerConfig,
    *,
    stop: asyncio.Event | None = None,
    on_listening: Callable[[int], None] | None = None,
) -> bool:
    """Serve until `stop` or, where none is given, SIGTERM or SIGINT; whether all calls were answered.

    Raises what ends a worker before it is asked to: a port that is taken (OSError), an engine that does not
    load (what the factory raises, or TimeoutError), one that hangs (EngineStuck).
    """
    worker = Worker(factory, config)
    with _signalled(stop) as asked:
        async with worker.listening() as port:
            if on_listening:
                on_listening(port)
            running = asyncio.create_task(worker.run())
            stopping = asyncio.create_task(asked.wait())
            try:
                await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if running.done():
                    running.result()
                return await worker.drain()
            finally:
                stopping.cancel()
                running.cancel()
                await asyncio.wait({running, stopping})
                if not running.cancelled() and (error := running.exception()):
                    _log.error("worker.failed", error=type(error).__name__)


def run(
    factory: Callable[[], Engine], config: WorkerConfig, *, on_listening: Callable[[int], None] | None = None
) -> int:
    """The worker as a process: exit status 0 where all that was queued was answered. Raises as `serve`."""
    return 0 if asyncio.run(serve(factory, config, on_listening=on_listening)) else 1


@contextmanager
def _signalled(stop: asyncio.Event | None) -> Iterator[asyncio.Event]:
    if stop is not None:
        yield stop
        return
    asked, loop = asyncio.Event(), asyncio.get_running_loop()
    handled = (signal.SIGTERM, signal.SIGINT)
    for number in handled:
        with suppress(NotImplementedError):  # Windows has no such handlers: SIGINT raises there
            loop.add_signal_handler(number, asked.set)
    try:
        yield asked
    finally:
        for number in handled:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
