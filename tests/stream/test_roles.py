import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from models.language.rule import RuleEngine
from models.language.settings import InvalidSetting
from models.local import LocalReader
from models.reader import ObserveRequest, ReaderUnavailable
from models.remote.engine import client_from
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
    given, _ = roles.engine_factory(asked).args  # type: ignore[attr-defined]
    assert (given.engine, given.hub, given.batch_tokens, given.cache) == ("rule", True, 99, RULE.cache)


def test_engine_remote_is_made_from_its_settings(settings: Settings) -> None:
    asked = msgspec.structs.replace(settings, reader="remote", remote_url="http://h/v1", remote_model="m")
    asked = msgspec.structs.replace(asked, remote_key="k", remote_parallel=3, remote_seconds=9.0)
    given = roles.reader_settings(asked)
    assert (given.engine, given.remote_url, given.remote_model) == ("remote", "http://h/v1", "m")
    assert (given.remote_key, given.remote_parallel) == ("k", 3)
    assert given.remote_seconds == settings.reader_seconds == 7.0, "who waits for it waits no longer"
    assert given.remote_per_minute is None
    paced = roles.reader_settings(msgspec.structs.replace(asked, remote_per_minute=60))
    assert paced.remote_per_minute == 60


@pytest.mark.parametrize("reader_seconds", [7.0, 120.0, 3600.0])
def test_a_remote_batch_ends_before_the_worker_gives_its_process_up(
    monkeypatch: pytest.MonkeyPatch, reader_seconds: float
) -> None:
    patient = msgspec.structs.replace(RULE, remote_url="http://h/v1", remote_model="m", remote_seconds=3600.0)
    patient = msgspec.structs.replace(patient, reader_seconds=reader_seconds)
    run: list[server.WorkerConfig] = []
    monkeypatch.setattr(server, "run", lambda _, config: run.append(config) or 0)
    roles.worker(patient, "127.0.0.1", 8311)
    client = client_from(roles.reader_settings(patient))
    client.close()
    assert reader_seconds < client.config.batch_seconds < run[0].batch.give_up_after


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


async def test_a_worker_whose_engine_finds_no_targets_is_named_at_start() -> None:
    async with fakes.worker(RuleEngine) as url:
        found = msgspec.structs.replace(RULE, worker=url, targets="found")
        with pytest.raises(
            InvalidSetting, match=r"^VOLTEFACE_TARGETS: found, but .* VOLTEFACE_READER=generative"
        ):
            await roles.reader(found)


async def test_a_worker_that_is_not_there_yet_is_not_held_against_the_settings() -> None:
    reader = await roles.reader(
        msgspec.structs.replace(RULE, worker="http://127.0.0.1:1", targets="found", reader_seconds=0.5)
    )
    with pytest.raises(ReaderUnavailable):
        await reader.proposes()
    await reader.close()
