import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from models.language.rule import RuleEngine
from models.local import LocalReader
from models.reader import ObserveRequest
from models.worker import server
from models.worker.client import WorkerReader
from stream import roles, single, topics
from stream.outbox import FLIPS, of_record
from stream.sender import Sender
from stream.settings import Settings
from stream.store.port import ConversationKey, Need
from stream.tail import following
from tests.models.worker import fakes
from tests.stream.fakes import target, turn

RULE = Settings(reader="rule", partitions=2, reader_seconds=7.0)
TALK = [target(), turn("1"), turn("2", "-1")]


@pytest.fixture(scope="module")
def here() -> Iterator[Settings]:
    with single.services(RULE) as reached:
        yield reached


@pytest.fixture
def settings(here: Settings, topic_prefix: str) -> Settings:
    return msgspec.structs.replace(here, topic_prefix=topic_prefix)


async def test_the_reader_is_the_engine_here_or_the_workers_client() -> None:
    local = await roles.reader(RULE)
    assert isinstance(local, LocalReader)
    assert local._timeout == 7.0
    await local.close()
    remote = await roles.reader(msgspec.structs.replace(RULE, worker="http://127.0.0.1:1"))
    assert isinstance(remote, WorkerReader)
    assert remote._config.timeout == 7.0
    await remote.close()


def test_a_worker_waits_as_long_as_its_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[tuple[Any, server.WorkerConfig]] = []
    monkeypatch.setattr(server, "run", lambda factory, config: run.append((factory, config)) or 0)
    assert roles.worker(RULE, "127.0.0.1", 8311) == 0
    [(factory, config)] = run
    assert isinstance(factory(), RuleEngine)
    assert (config.host, config.port, config.batch.timeout) == ("127.0.0.1", 8311, 7.0)


def test_an_engine_is_made_as_settings_say() -> None:
    asked = msgspec.structs.replace(RULE, hub=True, batch_tokens=99)
    [given] = roles.engine_factory(asked).args  # type: ignore[attr-defined]
    assert (given.engine, given.hub, given.batch_tokens, given.cache) == ("rule", True, 99, RULE.cache)


async def test_the_store_is_the_runs_own(settings: Settings) -> None:
    for run in ("live", "other"):
        store = roles.store(msgspec.structs.replace(settings, run=run))
        [loaded] = await store.load([Need(ConversationKey("default", "a"))])
        assert loaded.conversation.run == run
        await store.close()


async def first_flip(settings: Settings) -> dict[str, Any]:
    """Run every role until a flip has come out, then say stop, as a terminal does."""
    await topics.ensure(settings)
    running = asyncio.ensure_future(roles.everything(settings, 0))
    sender = Sender(settings)
    async with asyncio.timeout(60), following(settings, [FLIPS]) as tail, aclosing(tail.messages()) as seen:  # type: ignore[type-var]
        await sender.send([of_record(record) for record in TALK])
        _, flip = await anext(seen)
    await sender.close()
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(running, 30)
    data: dict[str, Any] = msgspec.json.decode(flip)["data"]
    return data


async def test_everything_folds_with_a_worker_of_its_own(settings: Settings) -> None:
    flip = await first_flip(settings)
    assert (flip["turn"], flip["from"], flip["to"]) == ("2", "support", "oppose")


async def test_everything_asks_the_worker_that_settings_name_and_starts_none(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Noted(RuleEngine):
        def tokens(self, request: ObserveRequest) -> int:
            asked.append(request.turn.turn)
            return super().tokens(request)

    async with fakes.worker(Noted) as address:
        monkeypatch.setattr(server, "serve", None)
        await first_flip(msgspec.structs.replace(settings, worker=address))
    assert asked[:2] == ["1", "2"]
