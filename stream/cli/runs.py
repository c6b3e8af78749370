"""`volteface runs`: which runs there are, and ending one for good."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import orjson
import typer
from aiokafka.errors import KafkaError
from redis.exceptions import RedisError
from rich import box
from rich.console import Console
from rich.table import Table

from stream import logs, runs, settings
from stream.runs import Run

app = typer.Typer(help="See which runs there are, and drop one.", no_args_is_help=True)


@app.command("list")
def listed(
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines.")] = False,
) -> None:
    """List the runs that have topics: what they hold, how far their agents are behind, how many there are."""
    given = settings.load()
    logs.quiet(given)
    with _failures("list"):
        found = asyncio.run(runs.listed(given))
    if json:
        sys.stdout.writelines(orjson.dumps(_row(run)).decode() + "\n" for run in found)
        sys.stdout.flush()
    else:
        _print(found)


@app.command()
def drop(
    run: Annotated[str, typer.Argument(help="Its name, as list prints it.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Though the broker counts agents; the embedded one forgets none.")
    ] = False,
) -> None:
    """Delete a run's topics and what Redis holds of it; live is never dropped."""
    given = settings.load({**os.environ, "VOLTEFACE_RUN": run})
    logs.quiet(given)
    if given.run != run:
        raise typer.BadParameter("name a run", param_hint="RUN")
    if not yes:
        typer.confirm(f"Delete all topics and states of run {run}?", abort=True, err=True)
    with _failures("drop"):
        gone = asyncio.run(runs.drop(given, force=force))
    typer.echo(f"run {run}: {gone.topics} topics and {gone.keys} keys deleted", err=True)


@contextmanager
def _failures(command: str) -> Iterator[None]:
    """What a person can mend is one line and exit status 1."""
    try:
        yield
    except (runs.NotDropped, KafkaError, RedisError, TimeoutError, OSError) as error:
        typer.echo(f"volteface runs {command}: {str(error) or type(error).__name__}", err=True)
        raise typer.Exit(1) from None


def _row(run: Run) -> dict[str, str | int]:
    return {"run": run.name, "records": run.records, "behind": run.behind, "agents": run.agents}


def _print(found: list[Run]) -> None:
    table = Table(title="Runs", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(("run", "records", "behind", "agents")):
        table.add_column(column, justify="right" if at else "left", no_wrap=True)
    for run in found:
        table.add_row(*map(str, _row(run).values()))
    Console().print(table)
