"""`volteface doctor`: what is set, what is installed, what answers, and what to do about the rest."""

import asyncio
import sys
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stream.doctor import Report, Status, examine

_STYLE = {Status.OK: "green", Status.WARNING: "yellow", Status.FAILED: "bold red", Status.SKIPPED: "dim"}


class SettingLine(msgspec.Struct, frozen=True, tag="setting", tag_field="kind"):
    """A setting as --json prints it."""

    name: str
    value: str
    source: str
    help: str


class CheckLine(msgspec.Struct, frozen=True, tag="check", tag_field="kind"):
    """A check as --json prints it."""

    name: str
    status: Status
    found: str
    remedy: str


def doctor(
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines.")] = False,
) -> None:
    """Check settings, installation, broker, topics, Redis and reader; exit 1 where something failed."""
    raise typer.Exit(1 if asyncio.run(_doctor(json)) else 0)


async def _doctor(json: bool) -> int:
    """How many checks failed; printed inside the loop, whose end may wait for a name server."""
    with Console(stderr=True).status("looking"):
        report = await examine()
    (_print_lines if json else _print_tables)(report)
    return report.count(Status.FAILED)


def _print_lines(report: Report) -> None:
    checks = [CheckLine(each.name, each.status, each.found, each.remedy) for each in report.checks]
    rows = [SettingLine(row.env or row.key, row.value, row.source, row.help) for row in report.settings]
    for line in (*checks, *rows):
        sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
    sys.stdout.flush()


def _print_tables(report: Report) -> None:
    console = Console()
    console.print(_checks(report), _settings(report))
    counts = [f"{count} {status}" for status in Status if (count := report.count(status))]
    console.print(", ".join(counts), highlight=False)


def _checks(report: Report) -> Table:
    table = _table("Checks", "", "check", "found, and what to do")
    for check in report.checks:
        # Text, not str: what stands in an address or a path must not be taken for markup.
        found = Text(check.found)
        if check.remedy:
            found.append(f"\n-> {check.remedy}", "bold" if check.status is Status.FAILED else "italic")
        table.add_row(Text(check.status, _STYLE[check.status]), Text(check.name), found)
    return table


def _settings(report: Report) -> Table:
    table = _table("Settings", "from", "setting", "value")
    for row in report.settings:
        table.add_row(row.source, row.env or row.key, Text(row.value))
    return table


def _table(title: str, *columns: str) -> Table:
    """Its first two columns whole at any width; of a path or an address in the last nothing is cut off."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(columns):
        table.add_column(column, no_wrap=at < 2, overflow="fold")
    return table
