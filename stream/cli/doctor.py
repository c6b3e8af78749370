"""`volteface doctor`: what is set, what is installed, what answers, and what to do about the rest."""

import asyncio
import sys
from typing import Annotated

import msgspec
import typer
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
    checks = Table("", "check", "found", "what to do", title="Checks", title_justify="left")
    for check in report.checks:
        state = Text(check.status, _STYLE[check.status])
        # Text, not str: what stands in an address or a path must not be taken for markup.
        checks.add_row(state, Text(check.name), Text(check.found), Text(check.remedy))
    settings = Table("setting", "value", "from", "meaning", title="Settings", title_justify="left")
    for row in report.settings:
        settings.add_row(row.env or row.key, Text(row.value), row.source, Text(row.help))
    console.print(checks, settings)
    counts = [f"{count} {status}" for status in Status if (count := report.count(status))]
    console.print(", ".join(counts), highlight=False)
