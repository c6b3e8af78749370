"""Bringing the database to the form that this version works with: `volteface database upgrade`."""

from pathlib import Path
from typing import Any

import structlog
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from stream.database.engine import Database, DatabaseUnavailable, open_database
from stream.database.schema import ACCOUNTS, SCHEMAS

log = structlog.get_logger(__name__)

HEAD = "head"
BASE = "base"
_LOCK = 0x766F6C7465  # "volte": of all who upgrade at once one goes first, the others find it done
_SCRIPTS = Path(__file__).parent / "migrations"


async def upgrade(url: str, revision: str = HEAD) -> str | None:
    """Take every step up to a revision in one transaction; gives the revision before (None: of no step).

    Raises DatabaseUnavailable.
    """
    return await _moved(url, command.upgrade, revision)


async def downgrade(url: str, revision: str) -> str | None:
    """Take steps back to a revision (`base`: to nothing), with what their tables held."""
    return await _moved(url, command.downgrade, revision)


async def check(database: Database) -> None:
    """Raises DatabaseUnavailable where the database has not the form that this version works with."""
    async with database.reading() as connection:
        found = await connection.run_sync(_revision)
    if found != newest():
        said = f"the database is at {found or 'no revision'}, this version works with {newest()}"
        raise DatabaseUnavailable(f"{said} -> run `volteface database upgrade`")


def newest() -> str | None:
    """The last revision of this version."""
    return ScriptDirectory.from_config(_config()).get_current_head()


async def _moved(url: str, move: Any, revision: str) -> str | None:
    database = open_database(url, pooled=False, statement_seconds=None)
    try:
        async with database.writing(seconds=None) as connection:
            before = await connection.run_sync(_move, move, revision)
    finally:
        await database.close()
    log.info("database.moved", before=before, to=revision)
    return before


def _move(connection: Connection, move: Any, revision: str) -> str | None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        for schema in SCHEMAS:
            connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {schema}"))
    before = _revision(connection)
    config = _config()
    config.attributes["connection"] = connection
    move(config, revision)
    return before


def _revision(connection: Connection) -> str | None:
    options = {"version_table_schema": ACCOUNTS}
    return MigrationContext.configure(connection, opts=options).get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    return config
