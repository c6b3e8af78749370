"""What every `volteface train` command has in common: options, settings, refusals in one line, a bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from models.language.wheels import WeightsUnavailable
from stream import logs
from stream import settings as all_settings

if TYPE_CHECKING:
    from models.language.backbone import Placement

Data = Annotated[
    list[str] | None, typer.Option(help="Repeat: open, sides, a benchmark's path, NAME=PATH. Default: open.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many dialogues of each part.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where the folder's run was stopped.")]
Every = Annotated[int, typer.Option("--checkpoint", min=1, help="Steps between checkpoints.")]
Research = Annotated[
    bool, typer.Option("--research", help="Also sources whose licence forbids what is shipped.")
]


def taking(shared: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command with options of its own, and those of a dataclass, of which it gets an instance first.

    Typer reads a command's signature: what commands have in common would stand in each of them.
    """

    def made(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def taken(**given: Any) -> None:
            asked = shared(**{field.name: given.pop(field.name) for field in fields(shared)})
            command(asked, **given)

        _, *own = signature(command).parameters.values()
        options = (*own, *signature(shared).parameters.values())
        keywords = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in options]
        taken.__signature__ = Signature(keywords)  # type: ignore[attr-defined]  # which inspect reads
        return taken

    return made


def settings() -> all_settings.Settings:
    """The settings, with logs so quiet that the bar stays whole."""
    loaded = all_settings.load()
    logs.configure(msgspec.structs.replace(loaded, log_level="warning"))
    return loaded


def placement(loaded: all_settings.Settings) -> "Placement":
    """Where settings want models to run."""
    from models.language.backbone import Placement  # noqa: PLC0415  # torch takes seconds

    return Placement(loaded.device, loaded.dtype, loaded.threads)


@contextmanager
def refusals() -> Iterator[None]:
    """What a person can mend is one line."""
    try:
        yield
    except (OSError, ValueError, LookupError, WeightsUnavailable) as error:
        typer.echo(f"volteface train: {error}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, gone when all is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(name, total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)
