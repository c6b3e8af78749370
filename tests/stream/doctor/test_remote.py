"""The servers of engine remote: there, away, with another model, behind a key."""

import socket
import time
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from stream.doctor import Check, remote
from stream.doctor.calls import CALL_SECONDS
from stream.settings import Settings, load

KEY = "s3cret"


def server(body: object = None) -> TestServer:
    async def models(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response({"error": {}}, status=401)
        return web.json_response({"data": [{"id": "large"}, {"id": "small"}]} if body is None else body)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    return TestServer(app)


async def look(url: str | None, model: str = "large", key: str | None = KEY) -> Check:
    [check] = await remote.examine(
        Settings(reader="remote", remote_url=url, remote_model=model, remote_key=key)
    )
    assert KEY not in f"{check.found}{check.remedy}"
    return check


async def test_it_is_there_and_has_the_model() -> None:
    async with server() as started:
        url = str(started.make_url("/v1"))
        assert (await look(url)).found == f"{url}: it has large"
        assert (await look(url + "/")).status == "ok"


async def test_it_has_other_models() -> None:
    async with server() as started:
        check = await look(str(started.make_url("/v1")), "huge")
    assert (check.status, check.remedy) == ("warning", "set VOLTEFACE_REMOTE_MODEL")
    assert check.found.endswith("it lists no huge, but large, small")


async def test_a_long_list_is_read_whole() -> None:
    names = [f"model-{'x' * 100}-{at}" for at in range(4000)]
    async with server({"data": [{"id": name} for name in (*names, "last")]}) as started:
        assert (await look(str(started.make_url("/v1")), "last")).status == "ok"


@pytest.mark.parametrize("key", [None, "another"])
async def test_it_refuses_the_key(key: str | None) -> None:
    async with server() as started:
        check = await look(str(started.make_url("/v1")), key=key)
    assert (check.status, check.remedy) == ("failed", "set VOLTEFACE_REMOTE_KEY")


async def test_something_else_is_there() -> None:
    async with server() as started:
        check = await look(str(started.make_url("/v2")))
    assert (check.status, "status 404" in check.found) == ("failed", True)
    async with server(["large"]) as started:
        check = await look(str(started.make_url("/v1")))
    assert (check.status, "it lists no models" in check.found) == ("warning", True)


async def test_nobody_is_there() -> None:
    check = await look("http://ada:pw@127.0.0.1:1/v1")
    assert (check.status, "pw" in check.found) == ("failed", False)


async def test_a_silent_port_ends_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        check = await look(f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
    assert "no answer within" in check.found
    assert time.monotonic() - began < CALL_SECONDS + 2


async def test_what_is_unset_is_named() -> None:
    assert "VOLTEFACE_REMOTE_URL" in (await look(None)).remedy
    assert "VOLTEFACE_REMOTE_MODEL" in (await look("http://h/v1", "")).remedy


@pytest.mark.parametrize("given", [{"reader": "rule"}, {"reader": "remote", "worker": "http://w:1"}])
async def test_who_asks_no_server_is_not_looked_at(given: dict[str, str]) -> None:
    [check] = await remote.examine(Settings(**given))
    assert check.status == "skipped"


async def test_each_language_may_have_its_own(tmp_path: Path) -> None:
    async with server() as started:
        url = started.make_url("/v1")
        tables = "".join(
            f'[[readers]]\nlanguages = ["{language}"]\nreader = "remote"\nremote_url = "{url}"\n'
            f'remote_model = "{model}"\nremote_key = "{KEY}"\n'
            for language, model in (("en", "large"), ("fr", "large"), ("zh", "small"))
        )
        (tmp_path / "v.toml").write_text('reader = "rule"\n' + tables)
        checks = await remote.examine(load({"VOLTEFACE_CONFIG": str(tmp_path / "v.toml")}))
    assert [check.found.rpartition(" ")[2] for check in checks] == ["large", "small"]
