"""`volteface track`: a file in, events out; no service needed."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from stream import app, logs, roles, settings, tracking
from stream.cli.forms import FILE_HELP, ConversationOption, DatesOption, FormOption, ZoneOption
from stream.cli.refusals import Refusals, StrictFailure
from stream.platforms import Line, UnknownForm, declare, open_records, sayings
from stream.store.memory import MemoryStore
from tracker.records import CreateTurn, DeclareTarget, Refused

RUN = "track"
UNDECLARED = (
    "nothing was read: the file declares no target; add --proposition 'The debate concerning whether ...'"
)
NOTHING_READ = "no turn was read: is the file of that form? --from names it, and is detected where not given"


def track(
    file: Annotated[Path, typer.Argument(help=f"{FILE_HELP}; - reads stdin.")],
    form: FormOption = None,
    zone: ZoneOption = None,
    dates: DatesOption = None,
    conversation: ConversationOption = None,
    proposition: Annotated[
        list[str] | None,
        typer.Option(help="What is debated; repeat for up to three. For files that declare none."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="One event for every turn and target.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first line that is refused.")] = False,
) -> None:
    """Print a file's established and flipped stances, one CloudEvent a line."""
    loaded = settings.load()
    logs.configure(msgspec.structs.replace(loaded, log_level="warning"))
    console = Console(stderr=True)
    refusals = Refusals(str(file), strict, console)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        said = sayings(zone, dates, conversation)
        source = str(file) if str(file) == "-" else file
        lines = declare(open_records(source, form, said), proposition or [])
        seen: set[type] = set()
        asyncio.run(_track(loaded, _noted(lines, seen), every, console, refusals))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read has read enough
    except StrictFailure:
        raise typer.Exit(1) from None
    except (OSError, Refused, UnknownForm, tracking.GaveUp) as error:
        typer.echo(f"volteface track: {error}", err=True)
        raise typer.Exit(1) from None
    if refusals.count:
        console.print(f"{refusals.count} lines refused")
    if refusals.count and CreateTurn not in seen:
        console.print(NOTHING_READ, highlight=False, soft_wrap=True)
        raise typer.Exit(1)
    if CreateTurn in seen and DeclareTarget not in seen and not loaded.rooms and loaded.targets == "declared":
        console.print(UNDECLARED, highlight=False, soft_wrap=True)


def _noted(lines: Iterator[Line], seen: set[type]) -> Iterator[Line]:
    for line in lines:
        seen.add(type(line.result))
        yield line


def _interrupt(number: int, frame: FrameType | None) -> None:
    """At once: asyncio's own handler waits for the next await, which a read from a terminal keeps away."""
    signal.default_int_handler(number, frame)


async def _track(
    loaded: settings.Settings, lines: Iterator[Line], every: bool, console: Console, refusals: Refusals
) -> None:
    # Record by record where targets are found, so that one is there before the next turn is read.
    waves = 1 if loaded.targets == "found" else loaded.batch_waves
    run = msgspec.structs.replace(loaded, run=RUN, emit_persisted=every, batch_waves=waves)
    store = MemoryStore(RUN)
    with console.status("loading the reader"):
        reader = await roles.reader(run)
    try:
        processor = app.processor(run, store, reader)
        with _progress(console) as progress:
            task = progress.add_task("lines", total=None)
            async for taken, events in tracking.track(lines, processor, store, refusals):
                progress.advance(task, taken)
                for event in events:
                    sys.stdout.buffer.write(event + b"\n")
                sys.stdout.buffer.flush()
    finally:
        await reader.close()


def _progress(console: Console) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.completed} {task.description}"), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
