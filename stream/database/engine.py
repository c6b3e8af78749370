"""How the database is reached: one engine over PostgreSQL (asyncpg) or SQLite (aiosqlite).

SQLite has a file for each schema: the address names that of `accounts`, and `views` stands beside it
(`name.db` and `name-views.db`). Both are attached to an empty main database, so that `accounts.keys` means
the same table on either database. SQLite commits each file by itself: a transaction writes one schema, not
both.

A transaction has TRANSACTION_SECONDS, a statement in PostgreSQL STATEMENT_SECONDS; what takes longer, or
finds no free connection in POOL_SECONDS, is DatabaseUnavailable, and all of it may be tried again.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import event, exc
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, NullPool

from stream.addresses import DATABASE, BadAddress
from stream.database.schema import ACCOUNTS, VIEWS

POOL_SIZE = 5
POOL_OVERFLOW = 5
POOL_SECONDS = 5.0
CONNECT_SECONDS = 5.0
STATEMENT_SECONDS = 10.0
TRANSACTION_SECONDS = 30.0
RECYCLE_SECONDS = 1800

_DRIVERS = {"postgresql": "postgresql+asyncpg", "sqlite": "sqlite+aiosqlite"}
_WRITING = "volteface_writing"
# SQLSTATE classes and codes that a later try may not meet: connection, rollback, resources, operator, system;
# a lock or statement that took too long, a standby, and a server that refuses this user for now.
_AWAY = ("08", "40", "53", "57", "58", "55P03", "25006", "28")
_NOT_MADE = ("42P01", "3F000", "42703")  # table, schema, column
_UPGRADE = "run `volteface database upgrade`"


class DatabaseUnavailable(Exception):
    """The database does not answer, or not in time, or lacks its tables: pause and try again."""


class Database:
    """An engine and its transactions; made by `open_database`, ended by `close`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine

    @property
    def dialect(self) -> str:
        """`postgresql` or `sqlite`."""
        return self.engine.dialect.name

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that only reads. Raises DatabaseUnavailable."""
        options = {"postgresql_readonly": True} if self.dialect == "postgresql" else {}
        async with self._transaction(options) as connection:
            yield connection

    @asynccontextmanager
    async def writing(self, *, seconds: float | None = TRANSACTION_SECONDS) -> AsyncIterator[AsyncConnection]:
        """A transaction, committed where the block ends well. Raises DatabaseUnavailable.

        In SQLite it waits for the one before it, and cannot fail half-way for want of the lock.
        """
        async with self._transaction({_WRITING: True}, seconds) as connection:
            yield connection

    @asynccontextmanager
    async def _transaction(
        self, options: dict[str, Any], seconds: float | None = TRANSACTION_SECONDS
    ) -> AsyncIterator[AsyncConnection]:
        with _unavailable():
            async with asyncio.timeout(seconds), self.engine.connect() as plain:
                connection = await plain.execution_options(**options)
                async with connection.begin():
                    yield connection

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()


def open_database(
    url: str, *, pooled: bool = True, statement_seconds: float | None = STATEMENT_SECONDS
) -> Database:
    """The database at a SQLAlchemy URL, as VOLTEFACE_DATABASE has it. Nothing is connected yet.

    `pooled` is off, and `statement_seconds` None (no limit), for one long transaction. Raises BadAddress.
    """
    address = _address(url)
    if address.get_backend_name() == "sqlite":
        return _sqlite(address, pooled=pooled)
    timeout = 0 if statement_seconds is None else int(statement_seconds * 1000)
    limits = {
        "timeout": CONNECT_SECONDS,
        "command_timeout": statement_seconds,
        "server_settings": {
            "application_name": "volteface",
            "statement_timeout": str(timeout),
            "idle_in_transaction_session_timeout": str(int(2 * TRANSACTION_SECONDS * 1000)),
        },
    }
    return Database(create_async_engine(address, connect_args=limits, pool_pre_ping=True, **_pool(pooled)))


def _pool(pooled: bool) -> dict[str, Any]:
    if not pooled:
        return {"poolclass": NullPool}
    return {
        "poolclass": AsyncAdaptedQueuePool,
        "pool_size": POOL_SIZE,
        "max_overflow": POOL_OVERFLOW,
        "pool_timeout": POOL_SECONDS,
        "pool_recycle": RECYCLE_SECONDS,
    }


def _address(url: str) -> URL:
    """The URL with our driver, and with libpq's name for TLS in asyncpg's. Raises BadAddress."""
    try:
        address = make_url(url)
    except exc.ArgumentError:
        raise BadAddress(f"it is no URL; write {DATABASE}") from None
    backend = address.get_backend_name()
    if backend not in _DRIVERS or address.drivername not in {backend, _DRIVERS[backend]}:
        raise BadAddress(f"its driver is one of {', '.join(_DRIVERS.values())}, or left out")
    if "sslmode" in address.query:
        mode = address.query["sslmode"]
        address = address.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})
    return address.set(drivername=_DRIVERS[backend])


def _sqlite(address: URL, *, pooled: bool) -> Database:
    if address.database in {None, "", ":memory:"}:
        raise BadAddress("a SQLite database is a file: write sqlite:///path")
    files = sqlite_files(str(address.database))
    empty = URL.create(address.drivername, query=address.query)
    engine = create_async_engine(empty, connect_args={"timeout": STATEMENT_SECONDS}, **_pool(pooled))

    @event.listens_for(engine.sync_engine, "connect")
    def attach(connection: Any, record: object) -> None:
        connection.isolation_level = None  # the driver would begin by itself, and commit before DDL
        cursor = connection.cursor()
        for schema, file in files.items():
            cursor.execute(f"ATTACH DATABASE ? AS {schema}", (file,))
            cursor.execute(f"PRAGMA {schema}.journal_mode = WAL")  # who reads does not wait for who writes
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get(_WRITING)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return Database(engine)


def sqlite_files(path: str) -> dict[str, str]:
    """The file of each schema, of the path in a SQLite URL."""
    file = Path(path)
    return {ACCOUNTS: path, VIEWS: str(file.with_name(f"{file.stem}-views{file.suffix}"))}


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except exc.DBAPIError as error:
        remedy = _remedy(error)
        if remedy is None:
            raise
        raise DatabaseUnavailable(f"{_first_line(error.orig)}{remedy}") from error
    except exc.TimeoutError as error:  # of the pool
        raise DatabaseUnavailable(f"no connection was free in {POOL_SECONDS:g} s") from error
    except TimeoutError as error:
        raise DatabaseUnavailable("the database did not answer in time") from error
    except OSError as error:
        raise DatabaseUnavailable(f"{type(error).__name__}: {error.strerror or error}") from error


def _remedy(error: exc.DBAPIError) -> str | None:
    """What to say behind an error that passes or can be mended; None for one that is ours."""
    state = str(getattr(error.orig, "sqlstate", None) or "")
    said = str(error.orig)
    if state.startswith(_NOT_MADE) or "no such table" in said or "no such column" in said:
        return f" -> {_UPGRADE}"
    lost = error.connection_invalidated or state.startswith(_AWAY) or isinstance(error, exc.InterfaceError)
    sqlite = isinstance(error.orig, sqlite3.OperationalError)
    return "" if lost or sqlite else None


def _first_line(error: BaseException | None) -> str:
    return str(error).partition("\n")[0]
