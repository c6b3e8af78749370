"""The probes over HTTP, on a watchdog of fakes."""

import json
import socket
from typing import Any

import aiohttp
import pytest

from stream import probes
from stream.embedded.process import free_port
from stream.offsets import Place
from stream.progress import Facts, Limits, Look
from stream.vitals import Vitals
from stream.watchdog import Watchdog

P, Q = ("turns", 0), ("turns", 1)
WITHIN = Limits(stall=10.0, routine=5.0, batch=30.0, join=20.0, outage=100.0)


class Stand:
    """What is asked."""

    def __init__(self) -> None:
        self.now, self.vitals, self.fetches = 0.0, Vitals(), 0
        self.facts = {
            P: Facts(end=7, position=7),
            Q: Facts(end=9, position=9, fetched=8, committed=5, place=Place(8, 7, 7)),
        }
        self.watchdog = Watchdog(WITHIN, self._look, self.vitals, lambda: self.now)
        self.address = f"127.0.0.1:{free_port()}"

    async def _look(self) -> Look:
        self.fetches += 1
        return Look(facts=self.facts, fetches=self.fetches, paused=self.vitals.paused is not None)

    async def look(self) -> None:
        self.vitals.joined = True
        self.now += 2.0
        await self.watchdog.look()

    async def get(self, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(f"http://{self.address}{path}") as got:
            return got.status, await got.text()

    async def ready(self) -> tuple[int, Any]:
        status, text = await self.get("/ready")
        return status, json.loads(text)

    async def number(self, name: str) -> str:
        """The value of one line of the metrics."""
        _, text = await self.get("/metrics")
        [found] = [line for line in text.splitlines() if line.startswith(f"volteface_agent_{name} ")]
        return found.rpartition(" ")[2]


async def test_live_is_answered_before_anything_is_known() -> None:
    stand = Stand()
    async with probes.serving(stand.address, stand.watchdog):
        assert (await stand.get("/live"))[0] == 200
        status, found = await stand.ready()
        assert (status, found["status"], found["partitions"]) == (503, "starting", {})
        assert found["version"] == probes.VERSION
        assert (await stand.get("/other"))[0] == 404


async def test_a_blocked_loop_answers_nobody() -> None:
    stand = Stand()
    async with probes.serving(stand.address, stand.watchdog):
        host, _, port = stand.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=0.3) as asking:
            asking.sendall(b"GET /live HTTP/1.0\r\n\r\n")
            with pytest.raises(TimeoutError):
                asking.recv(1)  # in the loop itself, which it blocks
        assert (await stand.get("/live"))[0] == 200


async def test_ready_says_how_each_partition_is() -> None:
    stand = Stand()
    async with probes.serving(stand.address, stand.watchdog):
        await stand.look()
        await stand.look()
        status, found = await stand.ready()
        assert (status, found["status"], found["paused"]) == (200, "ready", None)
        assert found["partitions"] == {
            "0": {"verdict": "idle", "due": None, "lag": 0, "seconds": 0.0},
            "1": {"verdict": "waiting", "due": "commit", "lag": 2, "seconds": 2.0},
        }
        for _ in range(7):
            await stand.look()
        status, found = await stand.ready()
        assert (status, found["status"]) == (503, "stalled")


async def test_ready_names_the_part_that_is_away() -> None:
    stand = Stand()
    async with probes.serving(stand.address, stand.watchdog):
        await stand.look()
        stand.vitals.pause("StoreUnavailable", stand.now)
        stand.now += 3.0
        status, found = await stand.ready()
        assert (status, found["status"]) == (503, "paused")
        assert found["paused"] == {"part": "StoreUnavailable", "seconds": 3.0}
        assert (await stand.get("/live"))[0] == 200


async def test_metrics_are_those_of_now() -> None:
    stand = Stand()
    stand.vitals.finish(3)
    stand.vitals.refuse(["null", "not_json", "null"])
    stand.vitals.pause("StoreUnavailable", 0.0)
    async with probes.serving(stand.address, stand.watchdog):
        await stand.look()
        await stand.look()
        assert await stand.number("finished_total") == "3.0"
        assert await stand.number('refused_total{reason="null"}') == "2.0"
        assert await stand.number('pauses_total{part="StoreUnavailable"}') == "1.0"
        assert await stand.number("ready") == "0.0"
        assert await stand.number('partition_lag{partition="1"}') == "2.0"
        assert await stand.number('partition_still_seconds{partition="1"}') == "2.0"
        assert await stand.number('partition_uncommitted_seconds{partition="1"}') == "2.0"
        stand.facts = {P: Facts(end=None)}
        stand.vitals.rest()
        await stand.look()
        _, text = await stand.get("/metrics")
        assert 'partition="1"' not in text, "it went to another agent"
        assert "partition_lag{" not in text, "the broker does not say"


async def test_a_taken_port_is_a_clear_error_and_nothing_is_left_open() -> None:
    stand, other = Stand(), Stand()
    other.address = stand.address
    async with probes.serving(stand.address, stand.watchdog):
        said = rf"VOLTEFACE_PROBES: cannot listen on {stand.address}: .*free"
        with pytest.raises(probes.PortTaken, match=said):
            async with probes.serving(other.address, other.watchdog):
                pass
    async with probes.serving(other.address, other.watchdog):  # given back
        assert (await other.get("/live"))[0] == 200


async def test_without_an_address_nothing_listens() -> None:
    stand = Stand()
    async with probes.serving(None, stand.watchdog):
        with pytest.raises(aiohttp.ClientError):
            await stand.get("/live")
