"""The engine on both databases: what is away is one exception, and what is ours is not hidden."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError

from stream.addresses import BadAddress
from stream.database import Database, DatabaseUnavailable, engine, open_database
from stream.database.schema import offsets
from stream.database.types import Name
from stream.database.upgrading import upgrade
from stream.embedded.process import free_port
from tests.postgres import PostgresServer

ROW = {"topic": "t", "partition": 0, "next": 1}


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    await upgrade(database_url)
    database = open_database(database_url)
    yield database
    async with database.writing() as connection:
        await connection.execute(offsets.delete())
    await database.close()


async def rows(database: Database) -> int:
    async with database.reading() as connection:
        return len((await connection.execute(select(offsets))).all())


async def test_a_block_that_fails_leaves_nothing(database: Database) -> None:
    with pytest.raises(KeyError):
        async with database.writing() as connection:
            await connection.execute(insert(offsets), ROW)
            raise KeyError
    assert await rows(database) == 0
    async with database.writing() as connection:
        await connection.execute(insert(offsets), ROW)
    assert await rows(database) == 1


async def test_a_wrong_statement_is_ours(database: Database) -> None:
    with pytest.raises(IntegrityError):
        async with database.writing() as connection:
            await connection.execute(insert(offsets), [ROW, ROW])


async def test_who_reads_does_not_wait_for_who_writes(database: Database) -> None:
    async with database.writing() as connection:
        await connection.execute(insert(offsets), ROW)
        assert await rows(database) == 0
    assert await rows(database) == 1


async def test_many_at_once_share_the_pool(database: Database) -> None:
    async def add(partition: int) -> None:
        async with database.writing() as connection:
            await connection.execute(insert(offsets), ROW | {"partition": partition})

    await asyncio.gather(*map(add, range(30)))
    assert await rows(database) == 30


async def test_a_pool_without_a_free_connection(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    few = engine.POOL_SIZE + engine.POOL_OVERFLOW
    held = [database.reading() for _ in range(few)]
    database.engine.pool._timeout = 0.1  # type: ignore[attr-defined]
    try:
        for each in held:
            await each.__aenter__()
        with pytest.raises(DatabaseUnavailable, match="no connection was free"):
            await rows(database)
    finally:
        for each in held:
            await each.__aexit__(None, None, None)
        database.engine.pool._timeout = engine.POOL_SECONDS  # type: ignore[attr-defined]


async def test_a_transaction_has_its_time(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable, match="in time"):
        async with database.writing(seconds=0.05) as connection:
            await connection.execute(insert(offsets), ROW)
            await asyncio.Event().wait()
    assert await rows(database) == 0


async def test_without_its_tables_it_says_what_to_run(tmp_path: Path) -> None:
    empty = open_database(f"sqlite:///{tmp_path}/empty.db")
    try:
        with pytest.raises(DatabaseUnavailable, match="volteface database upgrade"):
            await rows(empty)
    finally:
        await empty.close()


async def test_without_its_schemas_it_says_what_to_run(postgres_server: PostgresServer) -> None:
    empty = open_database(postgres_server.fresh())
    try:
        with pytest.raises(DatabaseUnavailable, match="volteface database upgrade"):
            await rows(empty)
    finally:
        await empty.close()


async def test_a_statement_that_takes_too_long(postgres_url: str) -> None:
    slow = open_database(postgres_url, statement_seconds=0.1)
    try:
        with pytest.raises(DatabaseUnavailable):
            async with slow.reading() as connection:
                await connection.execute(text("SELECT pg_sleep(20)"))
        with pytest.raises(DatabaseUnavailable, match=r"ReadOnly|read-only"):
            async with slow.reading() as connection:
                await connection.execute(text("CREATE TABLE public.other (id int)"))
    finally:
        await slow.close()


async def test_nothing_listens() -> None:
    gone = open_database(f"postgresql://nobody@127.0.0.1:{free_port()}/none")
    try:
        with pytest.raises(DatabaseUnavailable):
            await rows(gone)
    finally:
        await gone.close()


async def test_a_server_that_is_killed_and_comes_back() -> None:
    with PostgresServer() as server:
        url = server.fresh()
        await upgrade(url)
        database = open_database(url)
        try:
            async with database.writing() as connection:
                await connection.execute(insert(offsets), ROW)
            with pytest.raises(DatabaseUnavailable):
                async with database.writing() as connection:
                    await connection.execute(insert(offsets), ROW | {"partition": 1})
                    await asyncio.to_thread(server.halt, kill=True)
                    await connection.execute(insert(offsets), ROW | {"partition": 2})
            with pytest.raises(DatabaseUnavailable):
                await rows(database)
            await asyncio.to_thread(server.resume)
            assert await rows(database) == 1
        finally:
            await database.close()


async def test_a_locked_file_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "STATEMENT_SECONDS", 0.1)
    url = f"sqlite:///{tmp_path}/a.db"
    await upgrade(url)
    database = open_database(url)
    other = sqlite3.connect(tmp_path / "a-views.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnavailable, match="locked"):
            async with database.writing() as connection:
                await connection.execute(insert(offsets), ROW)
    finally:
        other.close()
        await database.close()


async def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/none/a.db")
    try:
        with pytest.raises(DatabaseUnavailable):
            await rows(database)
    finally:
        await database.close()


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "mysql://h/d", "postgresql+psycopg://h/d", "no url"]
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(BadAddress):
        open_database(url)


def test_what_libpq_calls_sslmode_is_asyncpgs_ssl() -> None:
    found = open_database("postgresql://u@h/d?sslmode=verify-full").engine.url
    assert (found.drivername, dict(found.query)) == ("postgresql+asyncpg", {"ssl": "verify-full"})


@pytest.mark.parametrize(
    ("path", "views"), [("a.db", "a-views.db"), ("x.y/a", "x.y/a-views"), ("/d/.a", "/d/.a-views")]
)
def test_each_schema_has_its_file(path: str, views: str) -> None:
    assert engine.sqlite_files(path) == {"accounts": path, "views": views}


@pytest.mark.parametrize("value", ["\x00", "\x01", "\x01\x01", "\x01\x02\x00", "a\x00b", "plain", ""])
def test_every_name_is_kept(value: str) -> None:
    kept = Name().process_bind_param(value, None)  # type: ignore[arg-type]
    assert kept is not None and "\x00" not in kept
    assert Name().process_result_value(kept, None) == value  # type: ignore[arg-type]


async def test_without_a_column_it_says_what_to_run(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable, match="volteface database upgrade"):
        async with database.reading() as connection:
            await connection.execute(text("SELECT nope FROM views.offsets"))
