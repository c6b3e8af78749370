"""`volteface views`: feed a run's views from its topics, and rebuild them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from stream import logs, roles, settings
from stream.addresses import BadAddress
from stream.settings import Settings
from stream.topics import TopicsUnavailable

app = typer.Typer(help="Conversations and events as subscribers ask for them.", no_args_is_help=True)


@app.command()
def run() -> None:
    """Feed the views from the run's topics until stopped (SIGTERM or Ctrl-C)."""
    with _loaded("run") as loaded:
        asyncio.run(_run(loaded))


@app.command()
def rebuild() -> None:
    """Feed all that the topics still hold once more; events keep the positions that they have.

    Feeders may go on meanwhile. Where the views are empty, do this before feeders start.
    """
    from stream.views import role  # noqa: PLC0415

    with _loaded("rebuild") as loaded:
        counts = asyncio.run(role.rebuilt(loaded, settings.database_of(loaded)))
    typer.echo(f"run {loaded.run}: {counts.messages} messages fed, {counts.refused} refused", err=True)


async def _run(loaded: Settings) -> None:
    from stream.views import role  # noqa: PLC0415

    with roles.stopping() as stop:
        await role.feed(loaded, settings.database_of(loaded), stop=stop)


@contextmanager
def _loaded(command: str) -> Iterator[Settings]:
    """The settings, and what fails in the block as one line and exit status 1."""
    from stream.database import DatabaseUnavailable  # noqa: PLC0415
    from stream.views.rebuilding import RebuildFailed  # noqa: PLC0415

    loaded = settings.load()
    logs.configure(loaded)
    try:
        yield loaded
    except (OSError, BadAddress, DatabaseUnavailable, RebuildFailed, TopicsUnavailable) as error:
        typer.echo(f"volteface views {command}: {error}", err=True)
        raise typer.Exit(1) from None
