"""`volteface agent`: fold a run's turns."""

import asyncio

import typer

from stream import logs, roles, settings
from stream.app import AppFailed
from stream.topics import TopicsUnavailable


def agent() -> None:
    """Fold a run's turns into states and events until stopped (SIGTERM or Ctrl-C)."""
    loaded = settings.load()
    logs.configure(loaded)
    try:
        asyncio.run(roles.agent(loaded))
    except (OSError, AppFailed, TopicsUnavailable) as error:
        typer.echo(f"volteface agent: {error}", err=True)
        raise typer.Exit(1) from None
