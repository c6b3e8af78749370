"""`volteface worker`: read turns for agents, over HTTP."""

from typing import Annotated

import typer

from stream import logs, roles, settings


def worker(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)
    ] = 8311,
) -> None:
    """Serve the reader over HTTP until stopped (SIGTERM or Ctrl-C)."""
    loaded = settings.load()
    logs.configure(loaded)
    try:
        status = roles.worker(loaded, host, port)
    except OSError as error:
        typer.echo(f"volteface worker: {error}", err=True)
        raise typer.Exit(1) from None
    raise typer.Exit(status)
