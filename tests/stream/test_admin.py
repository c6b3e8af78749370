import asyncio
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import NodeNotReadyError

from stream import admin as module
from stream.admin import Admin


class Brokers:
    """aiokafka's client: three brokers, of which some are down or stand still; notes who was asked."""

    def __init__(self, down: Collection[int], still: Collection[int] = ()) -> None:
        self.down, self.still, self.asked = down, still, list[int]()
        self.cluster = SimpleNamespace(brokers=lambda: [SimpleNamespace(nodeId=node) for node in (1, 2, 3)])

    async def send(self, node: int, request: str) -> str:
        self.asked.append(node)
        if node in self.down:
            raise NodeNotReadyError(f"node {node}")
        if node in self.still:
            await asyncio.Event().wait()
        return f"{request} of {node}"


def admin(brokers: Brokers) -> Any:
    made = object.__new__(Admin)
    made._client = brokers
    return made


async def test_another_broker_is_asked_where_one_is_down() -> None:
    for _ in range(20):
        brokers = Brokers({1, 3})
        assert await admin(brokers)._send_request("topics") == "topics of 2"
        assert len(set(brokers.asked)) == len(brokers.asked)


async def test_a_broker_that_stands_still_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.05)
    for _ in range(20):
        assert await admin(Brokers({1}, still={3}))._send_request("topics") == "topics of 2"


async def test_the_last_that_can_be_asked_has_its_whole_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.05)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5) as whole:
            await admin(Brokers(set(), still={1, 2, 3}))._send_request("topics")
    assert whole.expired()


async def test_where_all_are_down_it_says_so_after_each_was_asked() -> None:
    brokers = Brokers({1, 2, 3})
    with pytest.raises(NodeNotReadyError):
        await admin(brokers)._send_request("topics")
    assert sorted(brokers.asked) == [1, 2, 3]


async def test_what_one_broker_alone_knows_is_asked_of_no_other() -> None:
    brokers = Brokers({2})
    with pytest.raises(NodeNotReadyError):
        await admin(brokers)._send_request("offsets", 2)
    assert brokers.asked == [2]
