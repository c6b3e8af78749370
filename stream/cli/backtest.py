"""`volteface replay --compare`: which flips a candidate policy would change, told from a run's journal."""

import asyncio
import datetime as dt
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stream import backtest, logs, routes, settings
from stream.backtest import BacktestFailed, Report
from stream.cli.letter_display import PIPED_WIDTH, escaped
from stream.findings import Count, Difference, Findings, Told, findings
from stream.sources import read_toml
from tracker.backtest import Plan
from tracker.conversation import Rules
from tracker.observations import primary
from tracker.policy import Policy

CompareOption = Annotated[
    bool, typer.Option("--compare", help="No file: say what --policy would change of a run's flips.")
]
PolicyOption = Annotated[
    list[str] | None,
    typer.Option("--policy", help="With --compare: the candidate's FILE; LANGUAGE=FILE for a reader's own."),
]
BaselineOption = Annotated[
    list[str] | None,
    typer.Option("--baseline", help="With --compare: another policy. Default: the flips that stand."),
]
SinceOption = Annotated[
    str | None, typer.Option("--since", help="With --compare: only turns sent at or after this time.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="With --compare: one JSON object a difference.")]

SHOWN_DIFFERENCES, SHOWN_TARGETS = 200, 20
_OF_LANGUAGE = re.compile(r"(?P<language>\*|[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*)=(?P<file>.+)", re.DOTALL)
COUNTED = ("stands", "appears", "vanishes", "changes", "looks_false", "stale")


def compare(
    run: str | None,
    policy: Sequence[str] | None,
    baseline: Sequence[str] | None = None,
    conversation: str | None = None,
    since: str | None = None,
    *,
    json: bool = False,
) -> None:
    """Print which flips appear, vanish or change under a policy; ends with 1 where it cannot read.

    `policy`, `baseline`: each `FILE`, for VOLTEFACE_POLICY, or `LANGUAGE=FILE`, for a reader by language.
    """
    given = dict(os.environ) if run is None else {**os.environ, "VOLTEFACE_RUN": run}
    loaded = settings.load(given)
    if not policy:
        raise typer.BadParameter("name the candidate's file", param_hint="--policy")
    plan = Plan(
        in_force=rules(given, (), ""),
        candidate=rules(given, policy, "--policy"),
        base=rules(given, baseline, "--baseline") if baseline else None,
        since=_time(since),
    )
    logs.quiet(loaded)
    with findings() as found:
        try:
            report = asyncio.run(backtest.run(loaded, plan, found, [conversation] if conversation else []))
        except (BacktestFailed, OSError) as error:
            typer.echo(f"volteface replay: {error}", err=True)
            raise typer.Exit(1) from None
        _show_json(found) if json else show(found)
        for line in said(loaded.run, plan, report):
            typer.echo(line, err=True)


def rules(environment: Mapping[str, str], given: Sequence[str], option: str) -> Rules:
    """The rules that settings make with these policies in place of their own.

    Raises SettingsError, and typer.BadParameter.
    """
    files = [one for one in given if _of_language(one) is None]
    if len(files) > 1:
        raise typer.BadParameter("one FILE for all, and LANGUAGE=FILE for others", param_hint=option)
    for file in files:
        _read(file, option)  # refused by this option's name, not the setting's
    changed = {"VOLTEFACE_POLICY": files[0]} if files else {}
    policy, policies = routes.policies(settings.load({**environment, **changed}))
    for language, file in filter(None, map(_of_language, given)):
        thresholds = _read(file, option)
        if language == routes.OTHERS:
            exempt = {name: getattr(policy, name) for name in routes.EXEMPTIONS}
            policy = msgspec.structs.replace(thresholds, **exempt)
        elif language in policies:
            policies[language] = thresholds
        else:
            told = f"no [[readers]] table of the settings names {language}: give its FILE alone"
            raise typer.BadParameter(told, param_hint=option)
    return Rules(policy, policies=policies)


def _of_language(given: str) -> tuple[str, str] | None:
    found = _OF_LANGUAGE.match(given)
    return (primary(found["language"]), found["file"]) if found else None


def _read(file: str, option: str) -> Policy:
    try:
        return read_toml(Path(file).expanduser(), Policy)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"a policy's TOML file is needed: {error}", param_hint=option) from None


def _time(given: str | None) -> dt.datetime | None:
    if given is None:
        return None
    try:
        time = dt.datetime.fromisoformat(given)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise typer.BadParameter("a time with zone, such as 2026-11-29T20:14:05Z", param_hint="--since")
    return time


def _show_json(found: Findings) -> None:
    for one in found.differences():
        sys.stdout.write(msgspec.json.encode(one).decode() + "\n")
    sys.stdout.flush()


def show(found: Findings) -> None:
    """Print the tables of what was found."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPED_WIDTH)
    console.print(_counts("Flips", "", [found.all()]))
    console.print(_counts("By language", "language", found.by("language", SHOWN_TARGETS)))
    console.print(_counts("By target", "proposition", found.by("proposition", SHOWN_TARGETS)))
    console.print(_differences(found))


def _counts(title: str, name: str, counts: Sequence[Count]) -> Table:
    shown = _table(title, name, *(column.replace("_", " ") for column in COUNTED))
    for one in counts:
        shown.add_row(Text(escaped(one.name)), *(str(getattr(one, column)) for column in COUNTED))
    return shown


def _differences(found: Findings) -> Table:
    names = ("change", "conversation", "holder", "target", "turn", "base", "candidate", "marks")
    total = found.all()
    more = total.appears + total.vanishes + total.changes - SHOWN_DIFFERENCES
    title = "Differences, those that look false first"
    title += f" ({more} more: --json prints all)" if more > 0 else ""
    shown = _table(title, *names, right=False)
    for one in found.differences(SHOWN_DIFFERENCES):
        room = f"{one.tenant}/{one.conversation}"
        cells = (
            one.change,
            room,
            one.holder,
            one.target.id,
            one.turn,
            _moved(one.base),
            _moved(one.candidate),
        )
        shown.add_row(*(Text(escaped(cell)) for cell in cells), ", ".join(_marks(one)))
    return shown


def _table(title: str, *columns: str, right: bool = True) -> Table:
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(columns):
        shown.add_column(column, justify="right" if right and at else "left", overflow="fold")
    return shown


def _moved(told: Told | None) -> str:
    return "-" if told is None else f"{told.before} to {told.after} {told.confidence:.2f}"


def _marks(one: Difference) -> list[str]:
    marks = {"looks false": one.looks_false, "stale": one.stale, "partial": one.partial}
    return [name for name, holds in marks.items() if holds]


def said(run: str, plan: Plan, report: Report) -> Iterator[str]:
    """What a reader of the tables must know to believe them."""
    base = "what stands" if plan.base is None else f"policy {_stamps(plan.base)}"
    yield f"run {run}: {report.conversations} conversations, {base} beside policy {_stamps(plan.candidate)}"
    yield f"{report.stale} of {report.observations} observations stale: live would have asked the model again"
    if plan.candidate == (plan.base or plan.in_force):
        yield "both policies are the same"
    of = f"that policy {_stamps(plan.in_force)}, now in force, does not give as they stand: see --baseline"
    told = {
        "conversations of which the journal does not tell all": report.partial,
        f"flips {of}": report.unlike,
        "turns that were exempt and never read: what the candidate makes of them is unknown": report.unread,
        "turns of whose holder nothing tells the kind any more: taken as not exempt by it": report.kindless,
        "messages of the journal that cannot be read": report.unreadable,
        "conversations failed: see backtest.failed in the log": report.failed,
    }
    yield from (f"{count} {what}" for what, count in told.items() if count)


def _stamps(judging: Rules) -> str:
    others = (f"{language} {policy.stamp}" for language, policy in sorted(judging.policies.items()))
    return ", ".join((judging.policy.stamp, *others))
