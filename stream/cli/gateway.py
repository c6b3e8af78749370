"""`volteface gateway`: turns, events and corrections over HTTP."""

import asyncio
from typing import Annotated

import typer

from stream import logs, roles, settings
from stream.settings import Settings


def gateway(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)
    ] = 8080,
    feed: Annotated[bool, typer.Option(help="Feed the database's views here, too, from the topics.")] = True,
) -> None:
    """Serve the HTTP interface until stopped (SIGTERM or Ctrl-C)."""
    # Late: FastAPI and SQLAlchemy take a second to import.
    from stream.database import DatabaseUnavailable  # noqa: PLC0415

    loaded = settings.load()
    logs.configure(loaded)
    try:
        asyncio.run(_run(loaded, host, port, feed))
    except (OSError, DatabaseUnavailable) as error:
        typer.echo(f"volteface gateway: {error}", err=True)
        raise typer.Exit(1) from None


async def _run(loaded: Settings, host: str, port: int, feed: bool) -> None:
    from stream.gateway import role  # noqa: PLC0415

    with roles.stopping() as stop:
        await role.run(loaded, host, port, stop=stop, feeds=feed)
