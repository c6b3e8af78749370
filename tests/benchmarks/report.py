"""What is shown of the results: tables for people, JSON for machines."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from tests.benchmarks.measuring import Figure, Result

Machine = Mapping[str, str | int | float]


def show(console: Console, machine: Machine, results: Sequence[Result]) -> None:
    """A table of all figures, behind a description of the machine."""
    console.print("  ".join(f"[bold]{name}[/bold] {value}" for name, value in machine.items()))
    for result in results:
        console.print(_table(result))


def write(path: Path, machine: Machine, results: Sequence[Result], *, quick: bool) -> None:
    """Everything as JSON."""
    report = {"quick": quick, "machine": dict(machine), "benchmarks": [_plain(result) for result in results]}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")


def _table(result: Result) -> Table:
    conditions = ", ".join(f"{name} {value}" for name, value in result.conditions.items())
    table = Table(title=f"{result.name} ({result.seconds:.0f} s)", caption=conditions, title_justify="left")
    table.add_column("figure", overflow="fold")
    for column in ("min", "median", "max"):
        table.add_column(column, justify="right")
    for column in ("unit", "goal", ""):
        table.add_column(column)
    for figure in result.figures:
        values = (_number(value) for value in (figure.least, figure.median, figure.most))
        table.add_row(figure.name, *values, figure.unit, str(figure.goal or ""), _verdict(figure))
    return table


def _number(value: float) -> str:
    """Three digits that count; whole numbers from 1,000 on."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _verdict(figure: Figure) -> str:
    if figure.goal is None:
        return ""
    return "[green]met[/green]" if figure.goal.met_by(figure.median) else "[red]missed[/red]"


def _plain(result: Result) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(result)
    for figure, row in zip(result.figures, plain["figures"], strict=True):
        row |= {"min": figure.least, "median": figure.median, "max": figure.most}
        row["met"] = figure.goal.met_by(figure.median) if figure.goal else None
    return plain
