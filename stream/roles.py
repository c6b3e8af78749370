"""The roles a process can take, each made from settings: agent, worker, and the reader both may hold."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Protocol

import structlog

from models import routing
from models.language.registry import InvalidSetting, ReaderSettings
from models.language.settings import TALKING
from models.local import LocalReader
from models.reader import Engine, Reader, ReaderUnavailable
from models.worker import server
from models.worker.client import ClientConfig, WorkerReader
from models.worker.lanes import BatchLimits
from stream import app, routes, watchdog
from stream.settings import Settings
from stream.store.redis import RedisStore

log = structlog.get_logger(__name__)


def engine_factory(settings: Settings) -> Callable[[], Engine]:
    """What makes the engine that settings ask for, by language, where it is to run."""
    default, others, reads_all = routes.chosen(settings)
    by_language = {language: reader_settings(one) for language, one in others.items()}
    return partial(routing.build, reader_settings(default), by_language, reads_all=reads_all)


def reader_settings(settings: Settings) -> ReaderSettings:
    """What of the settings a reader is made from."""
    return ReaderSettings(
        engine=settings.reader,
        path=settings.model,
        adapter=settings.adapter,
        cache=settings.cache,
        device=settings.device,
        dtype=settings.dtype,
        threads=settings.threads,
        critic=settings.critic and settings.reader in TALKING,
        finds=settings.targets == "found" and settings.reader in TALKING,
        batch_tokens=settings.batch_tokens,
        hub=settings.hub,
        remote_url=settings.remote_url,
        remote_model=settings.remote_model,
        remote_key=settings.remote_key,
        remote_parallel=settings.remote_parallel,
        remote_per_minute=settings.remote_per_minute or None,
        remote_seconds=min(settings.remote_seconds, settings.reader_seconds),  # nobody waits for longer
    )


async def reader(settings: Settings) -> Reader:
    """The worker's client where a worker is set, else the engine in this process.

    Raises InvalidSetting where targets are to be found and the worker's engine finds none.
    """
    if settings.worker:
        read = _worker_reader(settings, settings.worker)
        if settings.targets == "found":
            await _check_proposes(read)
        return read
    return await LocalReader.load(engine_factory(settings), timeout=settings.reader_seconds)


async def _check_proposes(read: WorkerReader) -> None:
    """A worker that is not there yet is not held against it: it is asked again at the first turns."""
    try:
        if await read.proposes():
            return
    except ReaderUnavailable as error:
        log.warning("reader.targets_unchecked", error=str(error))
        return
    await read.close()
    remedy = f"start it with VOLTEFACE_TARGETS=found and VOLTEFACE_READER={' or '.join(TALKING)}"
    raise InvalidSetting("VOLTEFACE_TARGETS", "found, but the worker's engine finds none", remedy)


def _worker_reader(settings: Settings, address: str) -> WorkerReader:
    return WorkerReader(address, ClientConfig(timeout=settings.reader_seconds))


def _worker_config(settings: Settings, host: str, port: int) -> server.WorkerConfig:
    return server.WorkerConfig(
        host=host,
        port=port,
        batch=BatchLimits(
            timeout=settings.reader_seconds,
            stuck_after=settings.reader_seconds,
            # Above what a batch of engine `remote` may take: twice a call's time, which is at most this.
            give_up_after=max(BatchLimits.give_up_after, 2.5 * settings.reader_seconds),
        ),
    )


def store(settings: Settings) -> RedisStore:
    """The run's store in Redis."""
    return RedisStore(
        settings.redis, settings.run, prefix=settings.topic_prefix, cafile=settings.redis_cafile
    )


async def agent(settings: Settings, ready: Callable[[], None] = lambda: None) -> None:
    """Run the agent until SIGTERM or SIGINT. Raises AppFailed, TopicsUnavailable, OSError.

    A process whose agent stalled has ended with status 1 soon after that.
    """
    with stopping() as stop:
        await _agent(settings, stop, ready)


async def _agent(settings: Settings, stop: asyncio.Event, ready: Callable[[], None] = lambda: None) -> None:
    read = await reader(settings)
    try:
        await app.run(settings, store(settings), read, stop=stop, ready=ready, probed=settings.probes)
    except app.AppStalled as stalled:
        log.error("agent.stalled", error=str(stalled))
        watchdog.end_soon()
        raise


class Beside(Protocol):
    """What runs until the word to stop."""

    def __call__(self, *, stop: asyncio.Event) -> Coroutine[Any, Any, None]:
        """Begin."""
        ...


async def everything(settings: Settings, worker_port: int, beside: Beside | None = None) -> None:
    """Run a worker, an agent that asks it and what is beside them, in this process, until SIGTERM or SIGINT.

    Where settings name a worker, the agent asks that one. Raises what ends one of them before.
    """
    with stopping() as stop:
        async with _beside(stop, beside):
            if settings.worker:
                await _agent(settings, stop)
            else:
                await _with_worker(settings, worker_port, stop)


async def _with_worker(settings: Settings, port: int, stop: asyncio.Event) -> None:
    config, ended = _worker_config(settings, "127.0.0.1", port), asyncio.Event()
    listening: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(
        server.serve(engine_factory(settings), config, stop=ended, on_listening=listening.set_result)
    )
    serving.add_done_callback(lambda _: stop.set())
    try:
        either: list[asyncio.Future[Any]] = [serving, listening]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if listening.done():
            read = _worker_reader(settings, f"http://{config.host}:{listening.result()}")
            await app.run(settings, store(settings), read, stop=stop, probed=settings.probes)
    finally:
        ended.set()  # the agent first: a worker that drains would only hold it up
        await serving


@asynccontextmanager
async def _beside(stop: asyncio.Event, beside: Beside | None) -> AsyncIterator[None]:
    """Something that runs as long as the block, and ends the block where it ends."""
    if beside is None:
        yield
        return
    running = asyncio.ensure_future(beside(stop=stop))
    running.add_done_callback(lambda _: stop.set())
    try:
        yield
    finally:
        stop.set()
        await running


def worker(settings: Settings, host: str, port: int) -> int:
    """Run the worker until SIGTERM; returns the exit status."""
    return server.run(engine_factory(settings), _worker_config(settings, host, port))


@contextmanager
def stopping() -> Iterator[asyncio.Event]:
    """An event that SIGTERM, SIGINT and, but under nohup, a closing terminal set. Inside a running loop."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    signals = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    for name in signals:
        loop.add_signal_handler(name, stop.set)
    try:
        yield stop
    finally:
        for name in signals:
            loop.remove_signal_handler(name)
