"""The three stores of views that one contract holds for."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from stream.database import Database, open_database
from stream.database.upgrading import upgrade
from stream.views.memory import MemoryViews
from stream.views.port import Views
from stream.views.sql import SqlViews
from tests.postgres import PostgresServer


@pytest.fixture(scope="package", params=["memory", "sqlite", "postgresql"])
async def any_views(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Views]:
    """Each store in turn, shared by the package's tests: a tenant of its own keeps each apart."""
    if request.param == "memory":
        yield MemoryViews()
        return
    if request.param == "sqlite":
        folder: Path = tmp_path_factory.mktemp("views")
        url = f"sqlite:///{folder}/volteface.db"
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.fresh()
    await upgrade(url)
    database = open_database(url)
    yield SqlViews(database)
    await database.close()


@pytest.fixture
def tenant() -> str:
    """Nobody else's."""
    return f"tenant-{uuid4().hex[:12]}"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """The module's database, with its tables."""
    await upgrade(database_url)
    database = open_database(database_url)
    yield database
    await database.close()
