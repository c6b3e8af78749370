"""The transport: a rebalance loses no record, committed before or not."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from faust.transport.drivers import aiokafka as driver

from stream import transport

FRESH, OLD, GONE = (TopicPartition("turns", number) for number in range(3))


class Client:
    """An aiokafka consumer: what is assigned and committed, and where it was sent."""

    def __init__(self, committed: dict[TopicPartition, int | None]) -> None:
        self.committed, self.sought = committed, dict[TopicPartition, int | str]()

    def assignment(self) -> set[TopicPartition]:
        return {FRESH, OLD}

    async def seek_to_committed(self) -> dict[TopicPartition, int | None]:
        self.sought |= {tp: offset for tp, offset in self.committed.items() if offset}
        return self.committed

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self.sought |= dict.fromkeys(partitions, "beginning")

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.sought[partition] = offset


def thread(client: Client, *, flow: bool = True) -> Any:
    made = object.__new__(transport._Thread)
    made._consumer, made.consumer = client, SimpleNamespace(flow_active=flow)
    return made


@pytest.mark.parametrize("none", [None, 0])
def test_a_partition_without_a_commit_goes_back_to_its_beginning(none: int | None) -> None:
    client = Client({FRESH: none, OLD: 7})
    assert asyncio.run(thread(client)._seek_back()) == {FRESH: none, OLD: 7}
    assert client.sought == {FRESH: "beginning", OLD: 7}


def test_a_partition_that_has_gone_is_left_alone() -> None:
    client = Client({GONE: None})
    asyncio.run(thread(client)._seek_back())
    assert not client.sought


@pytest.mark.parametrize("flow", [True, False])
def test_what_would_be_dropped_is_put_back(monkeypatch: pytest.MonkeyPatch, flow: bool) -> None:
    taken = {
        FRESH: [SimpleNamespace(offset=3), SimpleNamespace(offset=4)],
        OLD: [],
        GONE: [SimpleNamespace(offset=9)],
    }

    async def fetched(*_: Any, **__: Any) -> Any:
        return taken

    monkeypatch.setattr(driver.AIOKafkaConsumerThread, "_fetch_records", fetched)
    client = Client({})
    records = asyncio.run(thread(client, flow=flow)._fetch_records(client, set(), timeout=1.0))
    assert records == (taken if flow else {})
    assert client.sought == ({} if flow else {FRESH: 3})
