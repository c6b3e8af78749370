"""`volteface conceal`: records with pseudonyms in the place of names, for tenants with privacy."""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from stream import logs, settings
from stream.cli.forms import ConversationOption, DatesOption, FormOption, ZoneOption
from stream.cli.refusals import Refusals
from stream.platforms import open_records, sayings
from stream.platforms.lines import STDIN, Line
from stream.tenants import NoKey, Tenants
from tracker import pseudonyms, records
from tracker.records import Record, Refused

NAME = "volteface conceal"


def conceal(
    file: Annotated[
        str | None, typer.Argument(help="Records in any form that `track` reads; - reads stdin.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Whose records these are; default: the tenant that each names.")
    ] = None,
    form: FormOption = None,
    zone: ZoneOption = None,
    dates: DatesOption = None,
    conversation: ConversationOption = None,
    holder: Annotated[
        list[str] | None, typer.Option(help="Print this holder's pseudonym instead; may be repeated.")
    ] = None,
) -> None:
    """Print records as native JSONL, holders as pseudonyms and without display names.

    What the texts themselves say stays as it is. Exits with 1 where a line is refused.
    """
    if (file is None) is (not holder):
        raise typer.BadParameter("name a file, or holders by --holder")
    loaded, refusals = settings.load(), Refusals(str(file), strict=False)
    logs.configure(msgspec.structs.replace(loaded, log_level="warning"))
    tenants = loaded.tenants
    try:
        if holder:
            key = tenants.key(tenant or "default")
            for name in holder:
                typer.echo(pseudonyms.pseudonym(key, tenant or "default", name))
            return
        source = STDIN if file == STDIN else Path(str(file))
        lines = open_records(source, form, sayings(zone, dates, conversation))
        for record in _concealed(lines, tenants, tenant, refusals):
            sys.stdout.buffer.write(records.encode(record) + b"\n")
    except (NoKey, OSError, ValueError) as error:
        typer.echo(f"{NAME}: {error}", err=True)
        raise typer.Exit(1) from None
    if refusals.count:
        raise typer.Exit(1)


def _concealed(
    lines: Iterator[Line], tenants: Tenants, tenant: str | None, refusals: Refusals
) -> Iterator[Record]:
    """The records that can be read. Raises NoKey."""
    key = cache(tenants.key)
    for line in lines:
        if isinstance(line.result, Refused):
            refusals(line.number, line.result)
            continue
        record = line.result
        if tenant is not None:
            record = msgspec.structs.replace(record, tenant=tenant)
        yield pseudonyms.concealed(key(record.tenant), record)
