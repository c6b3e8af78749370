"""The probes over HTTP."""

import socket

import aiohttp
import pytest

from stream.alerts import probes
from stream.alerts.vitals import Vitals
from stream.embedded.process import free_port
from stream.probes import PortTaken
from tests.tracker.alert_builders import BURST, FLIP, Room, fold


async def get(address: str, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}{path}") as got:
        return got.status, await got.text()


async def test_ready_once_it_has_joined_and_while_nothing_is_away() -> None:
    vitals, address = Vitals(), f"127.0.0.1:{free_port()}"
    async with probes.serving(address, vitals):
        assert (await get(address, "/live"))[0] == 200
        status, said = await get(address, "/ready")
        assert (status, '"joining"' in said) == (503, True)
        vitals.joined = True
        assert (await get(address, "/ready"))[0] == 200
        vitals.pause("StoreUnavailable")
        status, said = await get(address, "/ready")
        assert (status, '"StoreUnavailable"' in said) == (503, True)


async def test_metrics_count_what_was_done() -> None:
    vitals, address, room = Vitals(), f"127.0.0.1:{free_port()}", Room()
    flips = [room.flip() for _ in range(3)]
    vitals.finish(4, fold([*flips, room.retracted(flips[0])], (FLIP, BURST))[1])
    vitals.skipped["unreadable"] += 1
    vitals.lag[3] = 17
    async with probes.serving(address, vitals):
        _, told = await get(address, "/metrics")
    lines = set(told.splitlines())
    assert {
        "volteface_alerts_events_total 4.0",
        'volteface_alerts_skipped_total{reason="unreadable"} 1.0',
        'volteface_alerts_raised_total{rule="burst",severity="warning"} 1.0',
        'volteface_alerts_raised_total{rule="flip",severity="warning"} 3.0',
        'volteface_alerts_withdrawn_total{rule="burst"} 1.0',
        'volteface_alerts_partition_lag{partition="3"} 17.0',
        "volteface_alerts_ready 0.0",
    } <= lines


async def test_without_an_address_nothing_listens() -> None:
    async with probes.serving(None, Vitals()):
        pass


async def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(PortTaken, match="VOLTEFACE_PROBES: cannot listen on"):
            async with probes.serving(address, Vitals()):
                pass
