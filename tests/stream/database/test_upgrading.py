"""The migrations on both databases: up, down, up again, and the same tables as the MetaData."""

import asyncio
import importlib
import pkgutil
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Text, inspect

import stream.database
from stream.database import DatabaseUnavailable, open_database
from stream.database.schema import ACCOUNTS, SCHEMAS, VIEWS, metadata
from stream.database.types import Name
from stream.database.upgrading import BASE, check, downgrade, newest, upgrade

for _module in pkgutil.iter_modules(stream.database.__path__):
    if _module.name.endswith("_tables"):  # what belongs to the MetaData beside the views
        importlib.import_module(f"stream.database.{_module.name}")


def _tables(connection: Connection) -> dict[str, set[str]]:
    found = inspect(connection)
    return {schema: {*found.get_table_names(schema)} - {"alembic_version"} for schema in SCHEMAS}


def _differ(context: object, there: object, here: object, kept: Any, wanted: object) -> bool | None:
    """Whether a column's type is another; None leaves that to Alembic, which knows no Name."""
    if isinstance(wanted, Name):
        return not (isinstance(kept, Text) and kept.collation == "C")
    return None


def _differences(connection: Connection) -> list[object]:
    options = {
        "include_schemas": True,
        "version_table_schema": ACCOUNTS,
        "compare_type": _differ if connection.dialect.name == "postgresql" else False,
    }
    return [*compare_metadata(MigrationContext.configure(connection, opts=options), metadata)]


async def test_up_down_and_up_again(database_url: str) -> None:
    database = open_database(database_url, pooled=False)
    try:
        with pytest.raises(DatabaseUnavailable, match="volteface database upgrade"):
            await check(database)
        await asyncio.gather(*(upgrade(database_url) for _ in range(3)))
        await check(database)
        async with database.reading() as connection:
            found = await connection.run_sync(_differences)
            assert found == [], found
            whole = await connection.run_sync(_tables)
            assert {"events", "states", "offsets"} <= whole[VIEWS]
        await downgrade(database_url, BASE)
        async with database.reading() as connection:
            assert await connection.run_sync(_tables) == {ACCOUNTS: set(), VIEWS: set()}
        assert await upgrade(database_url) is None
        assert await upgrade(database_url) == newest()
        async with database.reading() as connection:
            assert await connection.run_sync(_tables) == whole
    finally:
        await database.close()
