"""The feeder as a role: `volteface views run`, and a part of `volteface up`."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from stream import topics
from stream.database.engine import STATEMENT_SECONDS, open_database
from stream.database.upgrading import check
from stream.settings import Settings
from stream.views.feeder import Feeder
from stream.views.rebuilding import rebuild
from stream.views.sql import SqlViews
from stream.views.storing import Counts


async def feed(
    settings: Settings,
    url: str,
    *,
    stop: asyncio.Event,
    told: Callable[[], None] = lambda: None,
    fresh: bool = False,
) -> None:
    """Make the run's topics and feed its views until `stop`; `told` and `fresh` as the feeder has them.

    What is away at the start is raised, TopicsUnavailable or DatabaseUnavailable; later it is waited for.
    """
    async with _views(url) as views:
        await topics.ensure(settings)
        await Feeder(settings, views, told=told, fresh=fresh).run(stop)


async def rebuilt(settings: Settings, url: str) -> Counts:
    """Rebuild a run's views. Raises RebuildFailed and DatabaseUnavailable."""
    async with _views(url, statement_seconds=None) as views:  # counting anew may take long
        return await rebuild(settings, views)


@asynccontextmanager
async def _views(url: str, *, statement_seconds: float | None = STATEMENT_SECONDS) -> AsyncIterator[SqlViews]:
    database = open_database(url, statement_seconds=statement_seconds)
    try:
        await check(database)
        yield SqlViews(database)
    finally:
        await database.close()
