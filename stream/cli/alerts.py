"""`volteface alerts`: raising alerts, what rules would have raised on a file, and checking rules."""

import asyncio
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from aiokafka.errors import KafkaError
from rich.console import Console

from stream import logs, roles, settings
from stream.alerts import role, rules
from stream.alerts.dry_run import DryRun
from stream.cli.refusals import Refusals
from stream.kafka import in_words
from stream.platforms.lines import opened, raw_lines
from stream.settings import Settings
from stream.topics import TopicsUnavailable
from tracker import alert_events
from tracker.alert_rules import Rule, counted_turns
from tracker.keys import LIVE

app = typer.Typer(help="Raise alerts on flips, or see what rules would have raised.", no_args_is_help=True)

NAME = "volteface alerts"
RulesFile = Annotated[
    Path, typer.Option("--rules", envvar="VOLTEFACE_ALERTS", help="TOML file of alert rules.")
]
UNSEEN = (
    "a rule counts turns, but the events tell only of those at which something moved, so it counts too few: "
    "print them with `volteface track --all`"
)
PERSISTED = (
    "a rule counts turns (flip_back with turns), but events tell only of those at which something moved: set "
    "VOLTEFACE_EMIT_PERSISTED=true for agents and for this, or use within"
)


@app.command()
def run(
    file: RulesFile,
    any_run: Annotated[
        bool, typer.Option("--any-run", help="Though it is a replay or a shadow, which raises none.")
    ] = False,
    from_now: Annotated[
        bool, typer.Option("--from-now", help="Begin at the end where nothing was read yet.")
    ] = False,
) -> None:
    """Find alerts in a run's events and send them to its topic, until stopped (SIGTERM or Ctrl-C)."""
    loaded = settings.load()
    if loaded.run != LIVE and not any_run:
        _give_up(f"run {loaded.run} is not live and raises no alerts; --any-run has it raise them")
    with _failures():
        found = rules.read(file)
        if counted_turns(found) and not loaded.emit_persisted:
            raise rules.RulesError([PERSISTED])
        logs.configure(loaded)
        asyncio.run(_run(loaded, found, from_now=from_now))


async def _run(loaded: Settings, found: tuple[Rule, ...], *, from_now: bool) -> None:
    with roles.stopping() as stop:
        await role.run(loaded, found, role.store(loaded), stop=stop, from_now=from_now)


@app.command()
def test(
    file: Annotated[Path, typer.Argument(help="Events as `volteface track` prints them; - reads stdin.")],
    rules_file: RulesFile,
) -> None:
    """Print the alerts that rules would have raised on a file of events, one a line; send nothing."""
    console = Console(stderr=True)
    refusals = Refusals(str(file), strict=False, console=console)
    with _failures():
        found = rules.read(rules_file)
        dry = DryRun(found, refusals)
        with opened(str(file) if str(file) == "-" else file) as stream:
            for alert in dry.alerts(raw_lines(stream)):
                sys.stdout.buffer.write(alert_events.encode(alert) + b"\n")
        sys.stdout.buffer.flush()
    for line in _summary(dry, found, refusals.count):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if refusals.count and not dry.events:
        raise typer.Exit(1)


@app.command()
def check(file: Annotated[Path, typer.Argument(help="TOML file of alert rules.")]) -> None:
    """Check a file of rules: name all that is wrong with it, or list its rules."""
    with _failures():
        for rule in rules.read(file):
            typer.echo(f"{rule.name}: {rule.kind}, {rule.severity}")


def _summary(dry: DryRun, found: Iterable[Rule], refused: int) -> Iterator[str]:
    alerts, withdrawn = dry.raised.total(), dry.withdrawn.total()
    yield f"{dry.events} events, {refused} lines refused; {alerts} alerts, {withdrawn} of them withdrawn"
    for rule in found:
        count = dry.raised[rule.name]
        yield f"  {rule.name}: {count or 'never fired'}"
    if dry.turns_unseen:
        yield f"{NAME} test: {UNSEEN}"


@contextmanager
def _failures() -> Iterator[None]:
    """What a person can mend is a line each: exit status 2 for rules, 1 for what does not answer."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read has read enough
        raise typer.Exit from None
    except rules.RulesError as error:
        for problem in error.problems:
            typer.echo(f"{NAME}: {problem}", err=True)
        raise typer.Exit(2) from None
    except KafkaError as error:
        _give_up(in_words(error), status=1)
    except (TopicsUnavailable, TimeoutError, OSError) as error:
        _give_up(str(error) or type(error).__name__, status=1)


def _give_up(said: str, status: int = 2) -> None:
    typer.echo(f"{NAME}: {said}", err=True)
    raise typer.Exit(status) from None
