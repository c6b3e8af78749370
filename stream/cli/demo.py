"""`volteface demo`: everything on this machine, four rooms through Kafka, flips on the screen."""

import asyncio
from importlib import resources
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console

from models.language.wheels import WeightsUnavailable
from stream import app, logs, roles, settings, single, topics
from stream.cli.room import Played, Room, Stuck, play
from stream.cli.summary import commands, table
from stream.embedded import ServiceUnavailable
from stream.settings import Settings

ROOMS = ("en", "zh", "es")
RULE_ROOM = "rule"


def demo(
    pace: Annotated[
        float, typer.Option(help="Reading speed: 1 is a person's, 0 does not wait.", min=0.0)
    ] = 1.0,
) -> None:
    """Play three real conversations, and one in rule form, through Kafka, and show every flip."""
    loaded = msgspec.structs.replace(settings.load(), log_level="error", partitions=4)
    logs.configure(loaded)
    console = Console()
    try:
        with single.services(loaded) as here:
            console.print(f"broker {here.broker}, redis {here.redis}: started here, gone with this command\n")
            played = asyncio.run(_demo(here, console, pace))
    except (ServiceUnavailable, WeightsUnavailable, app.AppFailed, topics.TopicsUnavailable, Stuck) as error:
        typer.echo(f"volteface demo: {error}", err=True)
        raise typer.Exit(1) from None
    console.print(table(played))
    console.print(commands())


async def _demo(here: Settings, console: Console, pace: float) -> list[Played]:
    console.print(f"{_reader(here)} Nothing was tuned to these conversations.\n", soft_wrap=True)
    reading = msgspec.structs.replace(here, run="demo")
    exact = msgspec.structs.replace(here, run="demo-rule", reader="rule", readers=())
    played = await _run(reading, console, [_room(name) for name in ROOMS], pace)
    console.print(
        "\nThe fourth room is read by rule (a text that begins with +1, -1 or +0 says so): it shows the "
        "stream's own speed and exactness, without a model."
    )
    return played + await _run(exact, console, [_room(RULE_ROOM)], pace)


def _reader(here: Settings) -> str:
    if here.worker or here.reader in ("rule", "remote") or here.adapter:
        return "The first three rooms are real conversations of the open dataset's test part."
    return "The reader has learned nothing about stance: what it says of the first three rooms is a guess."


async def _run(here: Settings, console: Console, rooms: list[Room], pace: float) -> list[Played]:
    """Start the run's agent here, play the rooms, stop it."""
    with console.status("loading the reader (the first time its weights are fetched and converted)"):
        reader = await roles.reader(here)
    stop, ready = asyncio.Event(), asyncio.Event()
    folding = asyncio.ensure_future(app.run(here, roles.store(here), reader, stop=stop, ready=ready.set))
    try:
        with console.status("the agent joins"):
            await _first(ready, folding)
        return await play(here, rooms, console, pace)
    finally:
        stop.set()
        await folding


async def _first(ready: asyncio.Event, folding: "asyncio.Future[None]") -> None:
    waiting = asyncio.ensure_future(ready.wait())
    either: list[asyncio.Future[Any]] = [waiting, folding]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if folding.done():
        waiting.cancel()
        folding.result()


def _room(name: str) -> Room:
    file = resources.files("stream.cli").joinpath("rooms", f"{name}.jsonl")
    return Room.read(name, file.read_bytes())
