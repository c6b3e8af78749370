"""The Faust app of a run, and running it: start, until told to stop, stop."""

import asyncio
import datetime as dt
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from models.reader import Reader
from stream import lag, positions, probes, rights, routes, topics, watchdog
from stream.agent import Agent
from stream.answering import Answering
from stream.kafka import denied, faust_credentials
from stream.processor import Bound, Processor
from stream.restore import Restorer
from stream.rights import NotAllowed
from stream.sender import Sender
from stream.settings import Settings, propositions_for
from stream.store.port import Store
from stream.transport import App, ConsumerFlow
from stream.vitals import Vitals
from stream.watchdog import Watchdog
from stream.wordless import Wordless
from tracker.clock import Clock
from tracker.conversation import Rules
from tracker.keys import LIVE

log = structlog.get_logger(__name__)

WITHIN_SECONDS = 0.01
STREAM_BUFFER = 256  # events prefetched; they are read again after a crash
POLL_RECORDS = 500
FETCH_BYTES = 2 * 1024 * 1024  # above any topic's max.message.bytes, else a record is skipped silently
REQUEST_SECONDS = 90.0  # at least; Faust takes no less than a session's timeout
START_TIMEOUT_SECONDS = 120.0
STOP_TIMEOUT_SECONDS = 4.0  # of the app, and then of all else together: who stops a process waits for 10


class AppFailed(Exception):
    """The app crashed or did not start; the process should end and be started again."""


class AppStalled(AppFailed):
    """The app runs and does nothing: what hangs in it may not even end when it is told to."""


def rules(settings: Settings) -> Rules:
    """The rules that settings make."""
    skew, reach = dt.timedelta(seconds=settings.clock_skew_seconds), dt.timedelta(days=settings.reach_days)
    policy, policies = routes.policies(settings)
    finds = settings.targets == "found"
    return Rules(policy, Clock(skew, reach), settings.emit_persisted, policies, finds)


def processor(settings: Settings, store: Store, reader: Reader) -> Processor:
    """The processor that settings make."""
    return Processor(
        store,
        reader,
        rules(settings),
        rooms=lambda tenant, conversation: propositions_for(settings, tenant, conversation),
        live=settings.run == LIVE,
        bound=Bound(waves=settings.batch_waves, seconds=settings.batch_seconds),
        attempts=settings.poison_attempts,
    )


def build(settings: Settings, agent: Agent, datadir: Path) -> App:
    """The Faust app that feeds the agent from the run's turns topic. Call it inside the running loop."""
    app = App(
        lag.group(settings),
        broker=[f"kafka://{server}" for server in settings.bootstrap_servers],
        broker_credentials=faust_credentials(settings),
        store="memory://",
        cache="memory://",
        datadir=str(datadir),
        web_enabled=False,
        topic_allow_declare=False,  # stream.topics makes them, with their configuration
        topic_disable_leader=True,
        topic_partitions=settings.partitions,
        table_standby_replicas=0,
        stream_wait_empty=False,  # unacked records are read again; waiting for them would hang a stop
        stream_buffer_maxsize=STREAM_BUFFER,
        broker_max_poll_records=POLL_RECORDS,
        broker_session_timeout=settings.rebalance_seconds,
        broker_heartbeat_interval=min(3.0, settings.rebalance_seconds / 3),
        broker_rebalance_timeout=settings.rebalance_seconds,
        broker_request_timeout=max(REQUEST_SECONDS, settings.rebalance_seconds),
        consumer_max_fetch_size=FETCH_BYTES,
        producer_request_timeout=30.0,
        loop=asyncio.get_running_loop(),
    )
    turns = app.topic(
        topics.topic(settings, "turns"),
        key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")  # fmt: skip

    async def fold(stream: Any) -> None:
        await agent.run(stream.noack_take(settings.batch_records, within=WITHIN_SECONDS))

    app.agent(turns, name="volteface.fold", concurrency=1)(fold)

    agent.steered(ConsumerFlow(app))
    _tell_of_partitions(app, agent)
    return app


def _tell_of_partitions(app: App, agent: Agent) -> None:
    """Have the agent told which partitions come and go."""

    async def forget(sender: Any, revoked: Any, **_: Any) -> None:
        agent.forget({(partition.topic, partition.partition) for partition in revoked})

    async def look(sender: Any, assigned: Any, **_: Any) -> None:
        agent.assigned({(partition.topic, partition.partition) for partition in assigned})

    app.on_partitions_revoked.connect(forget, weak=False)
    app.on_partitions_assigned.connect(look, weak=False)


async def run(
    settings: Settings,
    store: Store,
    reader: Reader,
    *,
    stop: asyncio.Event,
    ready: Callable[[], None] = lambda: None,
    probed: str | None = None,
) -> None:
    """Make the topics, run the agent until `stop`, then stop it; answer probes at the address `probed`.

    Raises AppFailed, TopicsUnavailable, and OSError where nothing can listen at that address.
    """
    sender, agent = _agent(settings, store, reader)
    folder = Path(tempfile.mkdtemp(prefix="volteface-faust-"))
    app = build(settings, agent, folder)
    watching = Watchdog(watchdog.limits(settings), partial(positions.look, app, agent), agent.vitals)
    try:
        async with probes.serving(probed, watching):
            if not await _before(stop, _prepared(settings)):
                return
            async with asyncio.timeout(START_TIMEOUT_SECONDS):
                await app.start()
            shutil.rmtree(folder)  # Faust keeps nothing there, and a process that is killed would leave it
            log.info("agent.started", run=settings.run, partitions=settings.partitions)
            ready()
            await _until(stop, app, watching)
    except NotAllowed as error:
        raise AppFailed(str(error)) from error
    except TimeoutError:
        raise AppFailed(f"the app did not start in {START_TIMEOUT_SECONDS:.0f} s") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        await _stop(app, sender, store, reader)
        log.info("agent.stopped", run=settings.run, finished=agent.vitals.finished)


async def _prepared(settings: Settings) -> None:
    await topics.ensure(settings)
    await rights.check(settings)


async def _before(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Whether work ended before the word to stop came; else it is given up."""
    told, working = asyncio.ensure_future(stop.wait()), asyncio.ensure_future(work)
    try:
        await asyncio.wait({told, working}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return working.done()
    finally:
        for task in (told, working):
            task.cancel()
        await asyncio.wait({told, working})


def _agent(settings: Settings, store: Store, reader: Reader) -> tuple[Sender, Agent]:
    """The agent that settings make, and what it sends with."""
    sender, vitals = Sender(settings), Vitals()
    reader = Answering(Wordless(reader, settings.tenants.wordless), vitals.tried)

    def restoring(reader: Reader) -> Processor:
        vitals.tried()  # a processor for each batch that is put back
        return processor(settings, store, reader)

    agent = Agent(
        processor(settings, store, reader),
        store,
        sender,
        live=settings.run == LIVE,
        poison_attempts=settings.poison_attempts,
        batch_records=settings.batch_records,
        restorer=Restorer(settings, store, reader, sender, restoring),
        vitals=vitals,
        private=settings.tenants.private,
    )
    return sender, agent


async def _until(stop: asyncio.Event, app: Any, watching: Watchdog) -> None:
    """Wait for the word to stop; raise where the app stops by itself, or no longer moves."""
    told = asyncio.ensure_future(stop.wait())
    ended = asyncio.ensure_future(app.wait_until_stopped())
    stalled = asyncio.ensure_future(watching.run())
    try:
        await asyncio.wait({told, ended, stalled}, return_when=asyncio.FIRST_COMPLETED)
        if told.done():
            return
        if ended.done():
            raise AppFailed(f"the app ended by itself: {app.crash_reason!r}{denied(app.crash_reason)}")
        raise AppStalled(stalled.result())
    finally:
        for task in (told, ended, stalled):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _stop(app: Any, sender: Sender, store: Store, reader: Reader) -> None:
    await _ended(app.stop)
    await asyncio.gather(*map(_ended, (sender.close, store.close, reader.close)))


async def _ended(stop: Callable[[], Awaitable[None]]) -> None:
    try:
        async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
            await stop()
    except Exception as error:  # each part is stopped, whatever becomes of the others
        log.warning("stop.failed", part=type(getattr(stop, "__self__", stop)).__name__, error=repr(error))
