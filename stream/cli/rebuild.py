"""`volteface rebuild`: a run's state put back into Redis from its topics."""

import asyncio
import os
from contextlib import AsyncExitStack
from typing import Annotated

import typer
from redis.exceptions import RedisError

from stream import logs, rebuilding, settings
from stream.putting import Report
from stream.rebuilding import RebuildFailed
from stream.settings import Settings
from stream.store.port import StoreUnavailable
from stream.store.redis import RedisStore

STORE_SECONDS = 30.0  # of one call: commits are large here, and nobody waits for a turn


def rebuild(
    run: Annotated[str | None, typer.Option(help="The run's name; default: VOLTEFACE_RUN, or live.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, change nothing.")
    ] = False,
) -> None:
    """Put a run's state back into an empty Redis, or one that lags; first end the run's agents.

    Exits with 1 where any conversation failed; all others are rebuilt then.
    """
    given = dict(os.environ) if run is None else {**os.environ, "VOLTEFACE_RUN": run}
    loaded = settings.load(given)
    logs.configure(loaded)
    try:
        report = asyncio.run(_rebuild(loaded, dry=dry_run))
    except (OSError, RebuildFailed, RedisError, StoreUnavailable) as error:
        typer.echo(f"volteface rebuild: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"run {loaded.run}: {_said(report)}", err=True)
    if report.failed:
        remedy = "see rebuild.failed in the log, mend what it tells, run this again, then start agents"
        typer.echo(f"volteface rebuild: {report.failed} conversations failed: {remedy}", err=True)
        raise typer.Exit(1)


async def _rebuild(loaded: Settings, *, dry: bool) -> Report:
    async with AsyncExitStack() as stack:
        store = RedisStore(
            loaded.redis,
            loaded.run,
            prefix=loaded.topic_prefix,
            timeout=STORE_SECONDS,
            cafile=loaded.redis_cafile,
        )
        stack.push_async_callback(store.close)
        return await rebuilding.run(loaded, store, dry=dry)


def _said(report: Report) -> str:
    awaited = f"{report.awaited} left to the agents' start, " if report.awaited else ""
    return (
        f"{report.rebuilt} conversations rebuilt, {report.left} left as they are, {awaited}"
        f"{report.without_text} windows without text"
    )
