"""The gateway as a role: its parts made from settings, and the views fed beside it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog

from stream import topics
from stream.accounts.sql import SqlAccounts
from stream.database import Database, open_database
from stream.database.upgrading import check
from stream.gateway.keyring import Keyring
from stream.gateway.names import Names
from stream.gateway.parts import Limits, Parts
from stream.gateway.server import serve
from stream.gateway.turns_log import TurnsLog
from stream.sender import Sender
from stream.settings import Settings, database_of
from stream.topics import TopicsUnavailable
from stream.views.feeder import Feeder
from stream.views.sql import SqlViews

log = structlog.get_logger(__name__)

TOPICS_SECONDS = 5.0


async def run(
    settings: Settings,
    host: str,
    port: int,
    *,
    stop: asyncio.Event,
    on_listening: Callable[[int], None] | None = None,
    feeds: bool = True,
    fresh: bool = False,
    limits: Limits | None = None,
) -> None:
    """Serve until `stop`. Raises SettingsError, DatabaseUnavailable where it begins without one, and OSError.

    `feeds`: the views are fed in this process, too; `fresh`: from topics that are younger than the views.
    """
    async with _database(settings) as database:
        await check(database)
        await _topics(settings)
        sender = Sender(settings)
        views = SqlViews(database)
        parts = Parts(
            run=settings.run,
            views=views,
            log=TurnsLog(sender),
            keyring=Keyring(SqlAccounts(database), settings.api_key),
            names=Names(settings.tenants),
            limits=limits,
        )
        feeder, ended = Feeder(settings, views, told=parts.tails.told, fresh=fresh), asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                if feeds:
                    group.create_task(feeder.run(ended))
                await serve(parts, host, port, stop=stop, on_listening=on_listening)
                ended.set()
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from several
        finally:
            await sender.close()


@asynccontextmanager
async def _database(settings: Settings) -> AsyncIterator[Database]:
    database = open_database(database_of(settings))
    try:
        yield database
    finally:
        await database.close()


async def _topics(settings: Settings) -> None:
    """Make the run's topics; where the broker is away, agents make them once it is back."""
    try:
        async with asyncio.timeout(TOPICS_SECONDS):
            await topics.ensure(settings)
    except (TopicsUnavailable, TimeoutError) as error:
        log.warning("gateway.topics_unmade", error=str(error) or "not in time")
