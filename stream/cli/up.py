"""`volteface up`: every role on one machine, with broker and Redis beside it."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from stream import app, logs, roles, settings, single, topics
from stream.embedded import ServiceUnavailable
from stream.settings import Settings

console = Console(stderr=True)


def up(
    data: Annotated[Path, typer.Option(help="Folder that keeps the states.")] = Path("volteface-data"),
    broker_port: Annotated[
        int | None, typer.Option(help="Kafka port; default: a free one.", min=1, max=65535)
    ] = None,
    redis_port: Annotated[
        int | None, typer.Option(help="Redis port; default: a free one.", min=1, max=65535)
    ] = None,
    worker_port: Annotated[
        int, typer.Option(help="Port of the reader's worker; 0: a free one.", min=0, max=65535)
    ] = 0,
) -> None:
    """Run broker, Redis, worker and agent here until stopped (Ctrl-C)."""
    loaded = settings.load()
    logs.configure(loaded)
    try:
        with single.services(loaded, data=data, broker_port=broker_port, redis_port=redis_port) as here:
            _say(here, data)
            asyncio.run(roles.everything(here, worker_port))
    except (OSError, ServiceUnavailable, app.AppFailed, topics.TopicsUnavailable) as error:
        typer.echo(f"volteface up: {error}", err=True)
        raise typer.Exit(1) from None


def _say(here: Settings, data: Path) -> None:
    file = single.write_settings(here, data)
    untrained = "" if here.adapter or here.reader in ("rule", "remote") else " (untrained)"
    turns, flips = topics.topic(here, "turns"), topics.topic(here, "flips")
    console.print(
        f"broker  {here.broker}  turns go to {turns}, flips leave on {flips}\n"
        f"redis   {here.redis}  states stay in {data.resolve()}\n"
        f"reader  {here.reader}{untrained}\n"
        f"Other commands find them after: export VOLTEFACE_CONFIG={file.resolve()}\n"
        "The embedded broker keeps topics in memory: they end with this command. Ctrl-C stops all.",
        highlight=False,
        soft_wrap=True,
    )
