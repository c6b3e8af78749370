"""`volteface replay`: a file's turns into a run of its own, folded by that run's agent."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from aiokafka.errors import KafkaError
from redis.exceptions import RedisError

from stream import app, lag, logs, replaying, roles, settings, topics
from stream.cli import backtest
from stream.cli.backtest import BaselineOption, CompareOption, JsonOption, PolicyOption, SinceOption
from stream.cli.forms import FILE_HELP, ConversationOption, DatesOption, FormOption, ZoneOption
from stream.cli.refusals import Refusals, StrictFailure
from stream.platforms import Line, UnknownForm, declare, open_records, sayings
from stream.sender import Sender
from stream.settings import Settings
from stream.store.connection import connect, disconnect
from tracker.keys import LIVE
from tracker.records import Refused

REDIS_TIMEOUT_SECONDS = 5.0


def replay(
    file: Annotated[Path | None, typer.Argument(help=f"{FILE_HELP}.", exists=True, dir_okay=False)] = None,
    run: Annotated[
        str | None, typer.Option(help="The run's name; default: made from the file, or live.")
    ] = None,
    rate: Annotated[
        float, typer.Option(help="Records a second; 0: as fast as they go.", min=0.0, max=1_000_000.0)
    ] = 0.0,
    form: FormOption = None,
    zone: ZoneOption = None,
    dates: DatesOption = None,
    conversation: ConversationOption = None,
    proposition: Annotated[
        list[str] | None, typer.Option(help="What is debated; repeat for up to three.")
    ] = None,
    agent: Annotated[bool, typer.Option(help="Fold the run here, too.")] = True,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first line that is refused.")] = False,
    compare: CompareOption = False,
    policy: PolicyOption = None,
    baseline: BaselineOption = None,
    since: SinceOption = None,
    json: JsonOption = False,
) -> None:
    """Produce a file into a run of its own, fold it, and end; stopped, it goes on where it was left.

    With --compare, nothing is produced: what another policy would change is told from a run's journal.
    """
    if compare:
        if file is not None:
            raise typer.BadParameter("--compare reads a run's journal, and no file; name the run by --run")
        backtest.compare(run, policy, baseline, conversation, since, json=json)
        return
    if policy or baseline or since or json:
        raise typer.BadParameter("--policy, --baseline, --since and --json go with --compare alone")
    if file is None:
        raise typer.BadParameter("name a file, or --compare with --policy", param_hint="FILE")
    read = partial(_read, file, form, (zone, dates, conversation), proposition or [])
    _play(file, run, rate, read, agent=agent, strict=strict)


def _read(
    file: Path, form: str | None, said: tuple[str | None, str | None, str | None], propositions: list[str]
) -> Iterable[Line]:
    return declare(open_records(file, form, sayings(*said)), propositions)


def _play(
    file: Path, run: str | None, rate: float, read: Callable[[], Iterable[Line]], *, agent: bool, strict: bool
) -> None:
    named = settings.load({**os.environ, "VOLTEFACE_RUN": run or replaying.default_run(file)})
    logs.configure(named)
    if named.run == LIVE:
        raise typer.BadParameter("a replay never enters the live run; name another", param_hint="--run")
    refusals = Refusals(str(file), strict)
    try:
        lines = read()
        sent = asyncio.run(_replay(named, file, lines, refusals, rate, agent))
    except StrictFailure:
        raise typer.Exit(1) from None
    except (
        OSError,
        Refused,
        UnknownForm,
        KafkaError,
        RedisError,
        app.AppFailed,
        topics.TopicsUnavailable,
    ) as error:
        typer.echo(f"volteface replay: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"run {named.run}: {sent} records sent, {refusals.count} lines refused", err=True)


async def _replay(
    named: Settings, file: Path, lines: Iterable[Line], refusals: Refusals, rate: float, with_agent: bool
) -> int:
    await topics.ensure(named)
    async with AsyncExitStack() as stack:
        stop = stack.enter_context(roles.stopping())
        redis = connect(named.redis, timeout=REDIS_TIMEOUT_SECONDS, pool=1, cafile=named.redis_cafile)
        stack.push_async_callback(disconnect, redis)
        sender = Sender(named)
        stack.push_async_callback(sender.close)
        progress = replaying.Progress(redis, named.topic_prefix, named.run, replaying.fingerprint(file))
        produce = partial(replaying.produce, lines, sender, progress, refusals, rate=rate)
        if not with_agent:
            return await _unless(stop, asyncio.ensure_future(produce()))
        folding = asyncio.ensure_future(_fold(named, stop))
        try:
            return await _unless(stop, asyncio.ensure_future(_finished(named, produce)), folding)
        finally:
            stop.set()
            await folding


async def _finished(named: Settings, produce: Callable[..., Awaitable[int]]) -> int:
    async with lag.watching(named) as watched:
        folded = partial(replaying.drained, watched)
        sent = await produce(folded=folded if named.targets == "found" else None)
        await folded()
    return sent


async def _fold(named: Settings, stop: asyncio.Event) -> None:
    reader = await roles.reader(named)
    await app.run(named, roles.store(named), reader, stop=stop)


async def _unless(stop: asyncio.Event, work: "asyncio.Future[int]", *others: "asyncio.Future[None]") -> int:
    """The work's result; what ends it before is the word to stop, or the end of another part."""
    told = asyncio.ensure_future(stop.wait())
    try:
        either: list[asyncio.Future[Any]] = [told, work, *others]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            if other.done():
                other.result()
        if not work.done():
            raise app.AppFailed("stopped before the end; the same command goes on from there")
        return work.result()
    finally:
        for task in (told, work):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
