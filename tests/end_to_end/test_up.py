"""One command, and over HTTP turns go in and flips come out; it ends when it is told to."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
from httpx_sse import aconnect_sse

from tests.end_to_end.harness import PROPOSITION, ROOT, now

START_SECONDS, STOP_SECONDS = 90.0, 20.0
_SAID = re.compile(r"gateway (?P<url>http://\S+)  key (?P<key>vf_\S+)")


def started(log: Path, data: Path) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VOLTEFACE_")}
    with log.open("w") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "stream.cli.main", "up", "--port", "0", "--data", str(data)],
            cwd=ROOT, env={**environment, "PYTHONPATH": str(ROOT), "VOLTEFACE_READER": "rule"}, stderr=said,
        )  # fmt: skip


async def test_turns_in_by_http_and_flips_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = started(log, tmp_path / "data")
    try:
        async with asyncio.timeout(START_SECONDS):
            while (found := _SAID.search(await asyncio.to_thread(log.read_text))) is None:
                assert process.poll() is None, log.read_text()
                await asyncio.sleep(0.1)
        headers = {"Authorization": f"Bearer {found['key']}"}
        async with httpx.AsyncClient(base_url=found["url"], headers=headers, timeout=30) as client:
            await flips(client)
    finally:
        process.terminate()
        status = await asyncio.to_thread(process.wait, STOP_SECONDS)
    assert status == 0, log.read_text()
    assert (tmp_path / "data" / "volteface.db").exists()


async def flips(client: httpx.AsyncClient) -> None:
    """A target and two turns go in, and a subscriber is told of the flip; nobody without a key is."""
    assert (await client.get("/v1/flips", headers={"Authorization": ""})).status_code == 401
    target = {"conversation": "room", "proposition": PROPOSITION}
    assert (await client.post("/v1/targets", json=target)).status_code == 202
    said = {"conversation": "room", "holder": "ann", "sent_at": now().isoformat()}
    turns = [{**said, "turn": "1", "text": "+1 yes"}, {**said, "turn": "2", "text": "-1 no longer"}]
    answer = (await client.post("/v1/turns", json=turns)).json()
    assert (answer["accepted"], answer["refused"]) == (2, 0)
    async with asyncio.timeout(30), aconnect_sse(client, "GET", "/v1/flips") as source:
        async for event in source.aiter_sse():
            if event.event == "volteface.stance.flipped":
                data = event.json()["data"]
                assert (data["turn"], data["from"], data["to"]) == ("2", "support", "oppose")
                return
