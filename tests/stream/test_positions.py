"""How far partitions are, from a consumer in a thread of its own that may hang, or be gone."""

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from stream import positions
from stream.offsets import Place
from stream.progress import Facts
from stream.vitals import Vitals

P, Q, GONE = (TopicPartition("turns", number) for number in range(3))


class Client:
    """An aiokafka consumer with two partitions; the broker says nothing of those in `silent`."""

    def __init__(self, silent: frozenset[TopicPartition] = frozenset()) -> None:
        self.silent = silent
        states = {
            P: SimpleNamespace(highwater=9, has_valid_position=True, position=7),
            Q: SimpleNamespace(highwater=None, has_valid_position=False),
        }
        assignment = SimpleNamespace(state_value=states.get)
        self._subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=assignment))

    async def end_offsets(self, tps: list[TopicPartition]) -> dict[TopicPartition, int]:
        if self.silent & set(tps):
            await asyncio.Event().wait()
        return dict.fromkeys(tps, 8)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that runs in a thread of its own."""
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever, daemon=True)
    thread.start()
    yield made
    asyncio.run_coroutine_threadsafe(_others_end(), made).result(5)
    made.call_soon_threadsafe(made.stop)
    thread.join(5)
    made.close()


async def _others_end() -> None:
    """All that was asked here and given up: a loop that stops over it leaves it to the garbage collector."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)


def consuming(client: Any, loop: asyncio.AbstractEventLoop, *assigned: TopicPartition) -> Any:
    thread = SimpleNamespace(_consumer=client, thread_loop=loop, fetched={P: 6}, fetches=3)
    consumer = SimpleNamespace(_thread=thread, _committed_offset={P: 5}, assignment=lambda: set(assigned))
    return SimpleNamespace(consumer=consumer, rebalancing=False, rebalancing_count=2)


def agent() -> Any:
    return SimpleNamespace(vitals=Vitals(), place=lambda partition: (Place(6, 5, 5), True))


async def test_all_that_is_known_is_brought_together(loop: asyncio.AbstractEventLoop) -> None:
    app = consuming(Client(), loop, P, Q)
    found = await positions.look(app, agent())
    assert (found.fetches, found.signs, found.paused) == (3, 0, False)
    assert found.facts[P] == Facts(end=9, position=7, fetched=6, committed=5, place=Place(6, 5, 5))
    assert found.facts[Q] == Facts(end=8, place=Place(6, 5, 5))
    app.rebalancing = True
    assert (await positions.look(app, agent())).facts[P].rebalance == 2


async def test_a_partition_without_a_leader_hides_no_other(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions, "BROKER_SECONDS", 0.05)
    found = await positions.look(consuming(Client(frozenset({P})), loop, P, Q, GONE), agent())
    assert {tp: facts.end for tp, facts in found.facts.items()} == {P: None, Q: 8, GONE: 8}
    assert all(facts.answers for facts in found.facts.values())


async def test_a_thread_that_hangs_does_not_answer_and_holds_nobody_up(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions, "ANSWER_SECONDS", 0.05)
    let_go = threading.Event()
    loop.call_soon_threadsafe(let_go.wait, 10)
    try:
        found = await positions.look(consuming(Client(), loop, P), agent())
    finally:
        let_go.set()
    assert not found.facts[P].answers


async def test_a_thread_that_is_gone_does_not_answer() -> None:
    closed = asyncio.new_event_loop()
    closed.close()
    assert not (await positions.look(consuming(Client(), closed, P), agent())).facts[P].answers


async def test_before_there_is_a_consumer_there_are_no_partitions() -> None:
    assert (await positions.look(consuming(None, asyncio.get_running_loop()), agent())).facts == {}
