"""`volteface up`: every role on one machine, with broker, Redis and database beside it."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from stream import app, logs, roles, settings, single, topics
from stream.accounts import secrets
from stream.embedded import ServiceUnavailable
from stream.settings import Settings

HOST = "127.0.0.1"  # only here: its key is printed

console = Console(stderr=True)


def up(
    data: Annotated[Path, typer.Option(help="Folder that keeps states and database.")] = Path(
        "volteface-data"
    ),
    port: Annotated[
        int, typer.Option(help="Port of the HTTP gateway; 0: a free one.", min=0, max=65535)
    ] = 8080,
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
    """Run broker, Redis, database, worker, agent and gateway here until stopped (Ctrl-C)."""
    # Late: FastAPI and SQLAlchemy take a second to import.
    from stream.database import DatabaseUnavailable, upgrading  # noqa: PLC0415
    from stream.gateway import role  # noqa: PLC0415

    loaded = settings.load()
    logs.configure(loaded)
    try:
        with single.services(loaded, data=data, broker_port=broker_port, redis_port=redis_port) as found:
            here = msgspec.structs.replace(found, api_key=found.api_key or secrets.made().text)
            asyncio.run(upgrading.upgrade(settings.database_of(here)))
            say = partial(_say, here, data, loaded.api_key is None)
            gateway = partial(role.run, here, HOST, port, on_listening=say, fresh=True)
            asyncio.run(roles.everything(here, worker_port, gateway))
    except (
        OSError,
        DatabaseUnavailable,
        ServiceUnavailable,
        app.AppFailed,
        topics.TopicsUnavailable,
    ) as error:
        typer.echo(f"volteface up: {error}", err=True)
        raise typer.Exit(1) from None


def _say(here: Settings, data: Path, made: bool, port: int) -> None:
    file = single.write_settings(here, data)
    untrained = "" if here.adapter or here.reader in ("rule", "remote") else " (untrained)"
    turns, flips = topics.topic(here, "turns"), topics.topic(here, "flips")
    key = here.api_key if made else "as VOLTEFACE_API_KEY has it"
    console.print(
        f"gateway http://{HOST}:{port}  key {key}\n"
        f"broker  {here.broker}  turns go to {turns}, flips leave on {flips}\n"
        f"redis   {here.redis}  states stay in {data.resolve()}\n"
        f"reader  {here.reader}{untrained}\n"
        f"Other commands find them after: export VOLTEFACE_CONFIG={file.resolve()}\n"
        "The embedded broker keeps topics in memory: they end with this command. Ctrl-C stops all.",
        highlight=False,
        soft_wrap=True,
    )
