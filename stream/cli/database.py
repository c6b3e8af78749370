"""`volteface database`: bring accounts and views to the form that this version works with."""

import asyncio

import typer

from stream import logs, settings
from stream.addresses import BadAddress

app = typer.Typer(help="The database of accounts and views.", no_args_is_help=True)

NAME = "volteface database"


@app.callback()
def _group() -> None:
    """Keep `upgrade` a command of its own, even while it is the only one."""


@app.command()
def upgrade() -> None:
    """Make the tables, or change those of an earlier version; several at once are safe."""
    # Late, as in every command that needs the database: SQLAlchemy takes a part of a second to import.
    from stream.database import DatabaseUnavailable, upgrading  # noqa: PLC0415

    loaded = settings.load()
    logs.configure(loaded)
    try:
        before = asyncio.run(upgrading.upgrade(settings.database_of(loaded)))
    except (DatabaseUnavailable, BadAddress) as error:
        typer.echo(f"{NAME} upgrade: {error}", err=True)
        raise typer.Exit(1) from None
    newest = upgrading.newest()
    typer.echo(f"at {newest} already" if before == newest else f"from {before or 'nothing'} to {newest}")
