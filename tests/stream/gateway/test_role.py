"""The whole way: turns over HTTP, an agent, the views in SQLite, and the flip as a server-sent event."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from stream import topics
from stream.database import DatabaseUnavailable
from stream.database.upgrading import upgrade
from stream.embedded import EmbeddedBroker
from stream.gateway.role import run
from stream.options import SettingsError
from stream.settings import Settings
from stream.store.memory import MemoryStore
from tests.end_to_end import harness
from tests.stream.fakes import until
from tests.stream.gateway.stand import FIRST_KEY, Subscriber, client, following

PROPOSITION = "whether tea beats coffee"


def settings_of(broker: str, prefix: str, folder: Path) -> Settings:
    given = harness.settings_of(broker, "redis://unused", prefix, idempotence=False)
    return replace(given, database=f"sqlite:///{folder}/volteface.db", api_key=FIRST_KEY)


@contextlib.asynccontextmanager
async def living(settings: Settings, port: int = 0) -> AsyncIterator[str]:
    stop, bound = asyncio.Event(), asyncio.get_running_loop().create_future()
    task = asyncio.create_task(run(settings, "127.0.0.1", port, stop=stop, on_listening=bound.set_result))
    try:
        await asyncio.wait({task, bound}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        assert bound.done(), task.result()
        yield f"http://127.0.0.1:{bound.result()}"
    finally:
        stop.set()
        async with asyncio.timeout(30):
            await task


def turn(number: int, text: str) -> dict[str, Any]:
    at = harness.now().isoformat()
    return {"conversation": "room", "turn": f"m{number}", "holder": "ann", "text": text, "sent_at": at}


async def test_a_flip_comes_to_subscribers_and_into_the_views(
    tansu_broker: EmbeddedBroker, topic_prefix: str, tmp_path: Path
) -> None:
    settings = settings_of(f"kafka://{tansu_broker.bootstrap}", topic_prefix, tmp_path)
    await upgrade(str(settings.database))
    await topics.ensure(settings)
    store = MemoryStore(settings.run)
    async with (
        harness.running(settings, store=store),
        living(settings) as url,
        client(url) as http,
    ):
        subscriber = Subscriber(url, "/v1/flips")
        async with following(subscriber):
            await until(lambda: subscriber.opened)
            target = {"conversation": "room", "proposition": PROPOSITION}
            assert (await http.post("/v1/targets", json=target)).status_code == 202
            given = [turn(number, "+1" if number < 9 else "-1") for number in range(10)]
            assert (await http.post("/v1/turns", json=given)).json()["accepted"] == 10
            await until(lambda: subscriber.events, 30)
        [flip] = subscriber.events
        data = flip.json()["data"]
        assert (data["from"], data["to"], data["turn"]) == ("support", "oppose", "m9")
        page = (await http.get("/v1/flips")).json()["events"]
        assert [row["event"]["id"] for row in page] == [flip.json()["id"]]
        room = (await http.get("/v1/conversations/room")).json()
        assert (room["flips"], room["targets"][0]["proposition"]) == (1, PROPOSITION)
        pin = {
            "conversation": "room",
            "reason": "misread",
            "to": "support",
            "holder": "ann",
            "target": data["target"]["id"],
        }
        assert (await http.post("/v1/corrections", json=pin)).status_code == 202
        await _told(http, "overridden", by="first-key")
        assert (await http.post("/v1/corrections", json=pin | {"to": None})).status_code == 202
        await _told(http, "restored")
        assert (
            await http.post("/v1/erasures", json={"conversation": "room", "holder": "ann"})
        ).status_code == 202
        await _told(http, "forgotten")
        assert (await http.get("/v1/flips?holder=ann")).json()["events"] == []


async def _rows(http: Any, kind: str) -> Any:
    return (await http.get("/v1/events", params={"kind": kind})).json()["events"]


async def _told(http: Any, kind: str, **data: str) -> None:
    async with asyncio.timeout(30):
        while not (rows := await _rows(http, kind)):  # noqa: ASYNC110 - it must be asked
            await asyncio.sleep(0.05)
    assert data.items() <= rows[0]["event"]["data"].items()


async def test_a_gateway_needs_a_database_with_its_tables(tmp_path: Path) -> None:
    stop = asyncio.Event()
    with pytest.raises(SettingsError, match="VOLTEFACE_DATABASE"):
        await run(Settings(), "127.0.0.1", 0, stop=stop)
    with pytest.raises(DatabaseUnavailable, match="upgrade"):
        await run(Settings(database=f"sqlite:///{tmp_path}/v.db"), "127.0.0.1", 0, stop=stop)


async def test_a_gateway_begins_while_the_broker_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream.gateway.role.TOPICS_SECONDS", 0.2)
    monkeypatch.setattr("stream.gateway.turns_log.CONFIRM_SECONDS", 0.5)
    settings = Settings(
        broker="kafka://127.0.0.1:1", database=f"sqlite:///{tmp_path}/v.db", api_key=FIRST_KEY
    )
    await upgrade(str(settings.database))
    async with living(settings) as url, client(url) as http:
        assert (await http.get("/v1/events")).json() == {"events": [], "next": None}
        assert (await http.get("/readyz")).status_code == 200
        answer = await http.post("/v1/turns", json=turn(1, "+1"))
        assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
        assert (await http.get("/readyz")).status_code == 503


async def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    settings = Settings(
        broker="kafka://127.0.0.1:1", database=f"sqlite:///{tmp_path}/v.db", api_key=FIRST_KEY
    )
    await upgrade(str(settings.database))
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="already in use"):
        async with asyncio.timeout(30):
            await run(settings, "127.0.0.1", taken.getsockname()[1], stop=asyncio.Event())
