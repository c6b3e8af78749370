"""`volteface dead-letters`: what was refused, and sending it again or putting it aside."""

import asyncio
import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import orjson
import typer
from aiokafka.errors import KafkaError

from stream import logs, settings
from stream.cli import letter_display as display
from stream.kafka import in_words
from stream.letter_desk import Done, working
from stream.letter_log import Asked, Ends, NoLetters, opened
from stream.letters import Letter, Newest, Status, Verdict
from stream.settings import Settings
from tracker.records import Reason

app = typer.Typer(help="See what was refused, send it again, or put it aside.", no_args_is_help=True)

NAME = "volteface dead-letters"

Run = Annotated[str | None, typer.Option("--run", help="The run; default: VOLTEFACE_RUN, else live.")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="As list prints them.")]
All = Annotated[bool, typer.Option("--all", help="All that are open.")]
Of = Annotated[Reason | None, typer.Option("--reason", help="Only those refused for this reason.")]
By = Annotated[str | None, typer.Option("--by", help="Who does it; default: the system's user.")]


@app.command("list")
def listed(
    run: Run = None,
    status: Annotated[
        Literal["open", "retried", "dropped", "all"], typer.Option(help="What became of them.")
    ] = "open",
    reason: Of = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="The newest so many.")] = 200,
) -> None:
    """List dead letters, the newest last; what the records say stays out of it."""
    named = _settings(run)
    with _failures(named):
        newest = asyncio.run(_newest(named, None if status == "all" else Status(status), reason, limit))
        rows = newest.rows()
        if json:
            sys.stdout.writelines(orjson.dumps(row).decode() + "\n" for row in rows)
        else:
            display.table(rows, f"Dead letters of run {named.run}: {status}")
        sys.stdout.flush()
    if newest.left_out:
        typer.echo(f"{NAME}: these are the newest {limit}; --limit shows more", err=True)


async def _newest(named: Settings, status: Status | None, reason: str | None, limit: int) -> Newest:
    newest = Newest(limit)
    async with opened(named) as log:
        verdicts = await log.verdicts()
        async for letter in log.letters():
            verdict = verdicts.get(letter.id)
            found = verdict.status if verdict else Status.OPEN
            if status in (None, found) and reason in (None, letter.header("volteface.reason")):
                newest.add(letter, verdict)
    return newest


@app.command()
def show(
    ident: Annotated[str, typer.Argument(metavar="ID", help="As list prints it.")],
    run: Run = None,
    raw: Annotated[bool, typer.Option("--raw", help="The record's bytes alone.")] = False,
) -> None:
    """Show a dead letter: its headers, why it was refused, the remedy, and the record as it came."""
    named = _settings(run)
    with _failures(named):
        letter, verdict = asyncio.run(_found(named, ident))
        if letter is None:
            _missing(named, frozenset([ident]))
            raise typer.Exit(1)
        if raw:
            sys.stdout.buffer.write(letter.value or b"")
        else:
            sys.stdout.writelines(line + "\n" for line in display.lines(letter, verdict))
        sys.stdout.flush()
    if raw and letter.cut:
        typer.echo(f"{NAME}: {display.held(letter)}", err=True)


async def _found(named: Settings, ident: str) -> tuple[Letter | None, Verdict | None]:
    async with opened(named) as log:
        verdict = (await log.verdicts()).get(ident)
        letters = [letter async for letter in log.chosen(Asked(frozenset([ident])))]
    return letters[0] if letters else None, verdict


@app.command()
def retry(
    ids: Ids = None,
    run: Run = None,
    every: All = False,
    reason: Of = None,
    edit: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="File with the record as it should be; for one ID."),
    ] = None,
    fix_key: Annotated[
        bool, typer.Option("--fix-key", help="Send it under the key of the conversation it names.")
    ] = False,
    by: By = None,
) -> None:
    """Send refused records again; each is folded at its place, as a late turn is."""
    asked = _asked(ids, every, reason)
    if edit and len(asked.ids) != 1:
        raise typer.BadParameter("a file stands for one record; name one ID", param_hint="--edit")
    named = _settings(run)
    with _failures(named):
        edited = edit.read_bytes() if edit else None
        done = asyncio.run(_retry(named, asked, by or _user(), edited, fix_key))
    _finish(named, done, "retried")


async def _retry(named: Settings, asked: Asked, by: str, edited: bytes | None, fix_key: bool) -> Done:
    async with working(named, by, _refused) as desk:
        return await desk.retry(asked, edited, fix_key)


@app.command()
def drop(
    ids: Ids = None,
    run: Run = None,
    every: All = False,
    reason: Of = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, with --all.")] = False,
    by: By = None,
) -> None:
    """Put dead letters aside; they stay in the topic as long as it keeps them."""
    asked = _asked(ids, every, reason)
    named = _settings(run)
    with _failures(named):
        ends: Ends | None = None
        if every and not yes:
            count, ends = asyncio.run(_counted(named, asked))
            if count:
                typer.confirm(f"Drop {count} open dead letters of run {named.run}?", abort=True, err=True)
        done = asyncio.run(_drop(named, asked, by or _user(), ends))
    _finish(named, done, "dropped")


async def _counted(named: Settings, asked: Asked) -> tuple[int, Ends]:
    """How many there are, and how far they reach: what comes while a person thinks is not meant."""
    async with opened(named) as log:
        count = 0
        async for _ in log.chosen(asked):
            count += 1
        return count, log.ends


async def _drop(named: Settings, asked: Asked, by: str, ends: Ends | None) -> Done:
    async with working(named, by, _refused, ends) as desk:
        return await desk.drop(asked)


def _settings(run: str | None) -> Settings:
    named = settings.load({**os.environ, "VOLTEFACE_RUN": run} if run else os.environ)
    logs.quiet(named)
    return named


def _asked(ids: list[str] | None, every: bool, reason: str | None) -> Asked:
    if bool(ids) is every:
        raise typer.BadParameter("name letters by their ID, or give --all", param_hint="ID...")
    if ids and reason:
        raise typer.BadParameter("it narrows --all; an ID says which letter", param_hint="--reason")
    return Asked(frozenset(ids or ()), reason)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have a number alone
        return f"uid-{os.getuid()}"


@contextmanager
def _failures(named: Settings) -> Iterator[None]:
    """What keeps the topic away is one line and exit status 1."""
    try:
        yield
        return
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read has read enough
        return
    except NoLetters as error:
        said = str(error)
    except (KafkaError, TimeoutError) as error:
        said = f"{', '.join(named.bootstrap_servers)}: {in_words(error)}"
    except OSError as error:
        said = str(error)
    typer.echo(f"{NAME}: {said}", err=True)
    raise typer.Exit(1)


def _refused(ident: str, why: str) -> None:
    typer.echo(f"{NAME}: {display.escaped(ident)} is left as it is: {why}", err=True)


def _missing(named: Settings, ids: frozenset[str]) -> None:
    found = ", ".join(map(display.escaped, sorted(ids)))
    typer.echo(f"{NAME}: run {named.run} has no {found}; list --status all shows what it has", err=True)


def _finish(named: Settings, done: Done, what: str) -> None:
    typer.echo(f"{NAME}: {done.count} {what}", err=True)
    if done.missing:
        _missing(named, done.missing)
    if done.missing or done.refused:
        raise typer.Exit(1)
