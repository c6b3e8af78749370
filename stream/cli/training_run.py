"""What every `volteface train` command has in common: settings, refusals in one line, a bar."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from models.language.wheels import WeightsUnavailable
from stream import logs
from stream import settings as all_settings

if TYPE_CHECKING:
    from models.language.backbone import Placement


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
