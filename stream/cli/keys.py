"""`volteface keys`: who may ask the gateway, and for what."""

import asyncio
import datetime as dt
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, TypeVar

import orjson
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from stream import logs, settings
from stream.accounts import secrets
from stream.accounts.port import MAX_NAME, Accounts, Key, Scope

T = TypeVar("T")

DEFAULT = (Scope.TURNS_WRITE, Scope.EVENTS_READ)

app = typer.Typer(help="Make, list and revoke the gateway's API keys.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines.")]


@app.command()
def create(
    principal: Annotated[str, typer.Argument(help="Whose key it is; an override says so.")],
    tenant: Annotated[str, typer.Option(help="The tenant whose data it opens.")] = "default",
    scope: Annotated[
        list[Scope] | None,
        typer.Option(help="What it may; may be given again. Default: turns:write and events:read."),
    ] = None,
) -> None:
    """Make a key, and print it: it is shown this once, and kept only as a digest."""
    for name, given in (("principal", principal), ("tenant", tenant)):
        if not given or len(given) > MAX_NAME:
            raise typer.BadParameter(f"1 to {MAX_NAME} characters", param_hint=name)
    made = secrets.made()
    key = Key(
        id=made.id,
        tenant=tenant,
        principal=principal,
        scopes=frozenset(scope or DEFAULT),
        digest=made.digest,
        made_at=dt.datetime.now(dt.UTC),
    )
    _with("create", lambda accounts: accounts.add(key))
    typer.echo(made.text)
    typer.echo(f"key {made.id} of {principal} ({tenant}): {_scopes(key)}; it is not shown again", err=True)


@app.command("list")
def listed(
    tenant: Annotated[str | None, typer.Option(help="Only that tenant's.")] = None, json: Json = False
) -> None:
    """List keys, revoked ones included; none is shown itself."""
    found = _with("list", lambda accounts: accounts.keys(tenant))
    if json:
        sys.stdout.writelines(orjson.dumps(_row(key)).decode() + "\n" for key in found)
        sys.stdout.flush()
    else:
        _print(found)


@app.command()
def revoke(ident: Annotated[str, typer.Argument(metavar="ID", help="Its id, as list prints it.")]) -> None:
    """End a key; gateways that know it take it for some seconds more."""
    if not _with("revoke", lambda accounts: accounts.revoke(ident, dt.datetime.now(dt.UTC))):
        said = f"no key {ident!r} holds; `volteface keys list` shows them"
        typer.echo(f"volteface keys revoke: {said}", err=True)
        raise typer.Exit(1)
    typer.echo(f"key {ident} is revoked", err=True)


def _with(command: str, ask: Callable[[Accounts], Awaitable[T]]) -> T:
    """What the accounts of the settings' database answer."""
    from stream.accounts.sql import SqlAccounts  # noqa: PLC0415
    from stream.database import open_database  # noqa: PLC0415
    from stream.database.upgrading import check  # noqa: PLC0415

    given = settings.load()
    logs.quiet(given)
    url = settings.database_of(given)

    async def asked() -> T:
        database = open_database(url)
        try:
            await check(database)
            return await ask(SqlAccounts(database))
        finally:
            await database.close()

    with _failures(command):
        return asyncio.run(asked())


@contextmanager
def _failures(command: str) -> Iterator[None]:
    from stream.database import DatabaseUnavailable  # noqa: PLC0415

    try:
        yield
    except (DatabaseUnavailable, OSError) as error:
        typer.echo(f"volteface keys {command}: {error}", err=True)
        raise typer.Exit(1) from None


def _scopes(key: Key) -> str:
    return ", ".join(sorted(key.scopes))


def _row(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "tenant": key.tenant,
        "principal": key.principal,
        "scopes": sorted(key.scopes),
        "made_at": key.made_at,
        "revoked_at": key.revoked_at,
    }


def _print(found: list[Key]) -> None:
    table = Table(title="Keys", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("id", "tenant", "principal", "scopes", "made", "revoked"):
        table.add_column(column, no_wrap=column == "id")
    for key in found:
        revoked = key.revoked_at.strftime("%Y-%m-%d %H:%M") if key.revoked_at else ""
        made = key.made_at.strftime("%Y-%m-%d %H:%M")
        table.add_row(key.id, key.tenant, key.principal, _scopes(key), made, revoked)
    Console().print(table)
