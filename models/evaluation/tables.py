"""The report as text tables: systems beside each other, then one system by part of the data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.table import Table

from models.evaluation.bootstrap import Interval
from models.evaluation.groups import ALL
from models.evaluation.report import Part, Report, System

UNDEFINED = "-"
HEADINGS: Mapping[str, str] = {
    "stance_accuracy": "stance acc.",
    "stance_macro_f1": "stance macro F1",
    "flip_any_f1": "flip F1",
    "flip_exact_f1": "exact flip F1",
    "flip_trigger_f1": "+ trigger",
    "flip_trigger_turn_f1": "+ trigger turn",
    "false_flips_per_1000_turns": "false / 1,000",
    "detection_delay_turns": "delay",
    "expressed_calibration_error": "ECE",
    "expressed_brier": "Brier",
}


def tables(report: Report) -> Iterator[Table]:
    """Figures of every system, how far they are from the first's, then each system's by part."""
    title = f"{report.data}, {report.split}"
    yield _live(f"{title}: every system", {made.name: made.parts[ALL] for made in report.systems})
    if len(report.systems) > 1:
        yield _apart(f"{title}: difference to {report.systems[0].name}", report.systems[1:])
    yield _paper(report, f"{title}: StanceFlip's metrics (judge: {report.judge})")
    for made in report.systems:
        yield _live(f"{title}: {made.name}", made.parts)


def figure(interval: Interval, digits: int = 2) -> str:
    """A figure with its interval, as `0.74 (0.71-0.77)`."""
    if interval.value is None or interval.low is None or interval.high is None:
        return UNDEFINED
    return f"{interval.value:.{digits}f} ({interval.low:.{digits}f}-{interval.high:.{digits}f})"


def signed(interval: Interval, digits: int = 2) -> str:
    """A difference with its interval, as `+0.03 (-0.01 to +0.07)`."""
    if interval.value is None or interval.low is None or interval.high is None:
        return UNDEFINED
    return f"{interval.value:+.{digits}f} ({interval.low:+.{digits}f} to {interval.high:+.{digits}f})"


def _apart(title: str, systems: Sequence[System]) -> Table:
    table = _headed(title, HEADINGS.values())
    for made in systems:
        table.add_row(made.name, *(signed(made.differences[key], _digits(key)) for key in HEADINGS))
    return table


def _live(title: str, parts: Mapping[str, Part]) -> Table:
    table = _headed(title, ("dialogues", "turns", "flips", *HEADINGS.values()))
    for name, part in parts.items():
        counts = (str(part.dialogues), str(part.turns), str(part.flips))
        table.add_row(name, *counts, *(figure(part.live[key], _digits(key)) for key in HEADINGS))
    return table


def _digits(key: str) -> int:
    return 0 if key == "false_flips_per_1000_turns" else 2


def _paper(report: Report, title: str) -> Table:
    table = _headed(title, (made.name for made in report.systems), "metric")
    for name in _metrics(report.systems):
        table.add_row(name, *(figure(made.parts[ALL].stanceflip[name]) for made in report.systems))
    return table


def _headed(title: str, headings: Iterable[str], first: str = "") -> Table:
    table = Table(title=title)
    table.add_column(first, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _metrics(systems: tuple[System, ...]) -> list[str]:
    return list(systems[0].parts[ALL].stanceflip) if systems else []
