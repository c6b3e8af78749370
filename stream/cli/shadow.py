"""`volteface shadow`: another run's turns, folded a second time by another reader or policy."""

import asyncio
import os
from typing import Annotated, Any

import typer

from stream import app, logs, roles, settings, shadowing, topics
from stream.settings import Settings
from stream.shadowing import ShadowFailed
from tracker.keys import LIVE


def shadow(
    run: Annotated[str, typer.Argument(help="The shadow's name: a run of its own.")],
    of: Annotated[str, typer.Option(help="The run whose turns it is given.")] = LIVE,
    agent: Annotated[bool, typer.Option(help="Fold them here, too, by this process's settings.")] = True,
) -> None:
    """Copy a run's turns into a run of its own as they come, and fold them there, until stopped."""
    named = settings.load({**os.environ, "VOLTEFACE_RUN": run})
    source = settings.load({**os.environ, "VOLTEFACE_RUN": of})
    logs.configure(named)
    if named.run == LIVE:
        raise typer.BadParameter("live is nobody's shadow; name another", param_hint="RUN")
    try:
        copied = asyncio.run(_shadow(source, named, with_agent=agent))
    except (OSError, ShadowFailed, app.AppFailed, topics.TopicsUnavailable) as error:
        typer.echo(f"volteface shadow: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"run {named.run}: {copied} records of run {source.run} copied", err=True)


async def _shadow(source: Settings, named: Settings, *, with_agent: bool) -> int:
    """Both parts until the word to stop; where one ends before, so does the other."""
    with roles.stopping() as stop:
        await topics.ensure(named)
        copying = asyncio.ensure_future(shadowing.follow(source, named, stop))
        parts: list[asyncio.Future[Any]] = [copying]
        if with_agent:
            parts.append(asyncio.ensure_future(_fold(named, stop)))
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            await asyncio.wait(parts)
        for part in parts:
            part.result()
        return copying.result()


async def _fold(named: Settings, stop: asyncio.Event) -> None:
    reader = await roles.reader(named)
    await app.run(named, roles.store(named), reader, stop=stop)
