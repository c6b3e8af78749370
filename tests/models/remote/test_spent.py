"""What was spent, where a person looks for it: at a worker's /metrics."""

import aiohttp
import msgspec

from models.language.settings import ReaderSettings
from models.routing import build
from models.worker.wire import ObserveCall
from tests.models.remote.faulty_server import FaultyServer
from tests.models.worker.fakes import PATIENCE, observe_request, worker


async def test_a_worker_tells_what_its_remote_engine_spent(server: FaultyServer) -> None:
    settings = ReaderSettings(
        engine="remote", remote_url=server.url, remote_model="a-model", remote_key="s3cret"
    )
    asked = [observe_request("m-1", "one"), observe_request("m-2", "two")]
    timeout = aiohttp.ClientTimeout(total=PATIENCE)
    async with worker(lambda: build(settings)) as url, aiohttp.ClientSession(timeout=timeout) as http:
        body = msgspec.json.encode(ObserveCall(asked))
        async with http.post(f"{url}/v1/observe", data=body) as response:
            assert response.status == 200
        async with http.get(f"{url}/metrics") as response:
            lines = (await response.text()).splitlines()
    for line in (
        'volteface_remote_calls_total{ended="answered",model="a-model"} 2.0',
        'volteface_remote_calls_total{ended="limited",model="a-model"} 0.0',
        'volteface_remote_tokens_total{kind="prompt",model="a-model"} 200.0',
        'volteface_remote_tokens_total{kind="cached",model="a-model"} 120.0',
        'volteface_remote_tokens_total{kind="completion",model="a-model"} 20.0',
        'volteface_remote_circuit_opened_total{model="a-model"} 0.0',
    ):
        assert line in lines
    assert not any("s3cret" in line for line in lines)
