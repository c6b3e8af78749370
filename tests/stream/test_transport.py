"""The transport: a rebalance loses no record, committed before or not."""

import asyncio
from collections import defaultdict
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from intervaltree import IntervalTree
from structlog.testing import capture_logs

from stream import transport

FRESH, OLD, GONE = (TopicPartition("turns", number) for number in range(3))


class Client:
    """An aiokafka consumer: what is assigned and committed, and where it was sent."""

    def __init__(self, committed: dict[TopicPartition, int | None]) -> None:
        self.committed, self.sought = committed, dict[TopicPartition, int | str]()
        self._coordinator: Any = None
        self.starts: dict[TopicPartition, int] | Exception = {}

    def assignment(self) -> set[TopicPartition]:
        return {FRESH, OLD}

    async def seek_to_committed(self) -> dict[TopicPartition, int | None]:
        self.sought |= {tp: offset for tp, offset in self.committed.items() if offset}
        return self.committed

    async def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        if isinstance(self.starts, Exception):
            raise self.starts
        return dict.fromkeys(partitions, 0) | self.starts

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


def test_records_that_aged_out_unread_are_told_of() -> None:
    client = Client({FRESH: None, OLD: 7})
    client.starts = {FRESH: 40, OLD: 12}
    with capture_logs() as logs:
        asyncio.run(thread(client)._seek_back())
        client.starts = {OLD: 7}
        asyncio.run(thread(client)._seek_back())
    assert [(line["event"], line["partition"], line["records"]) for line in logs] == [
        ("turns.aged_out", 1, 5)
    ]


@pytest.mark.parametrize("error", [KafkaError("away"), TimeoutError(), OSError()])
def test_a_broker_that_does_not_say_where_a_log_begins_holds_nothing_up(error: Exception) -> None:
    client = Client({OLD: 7})
    client.starts = error
    assert asyncio.run(thread(client)._seek_back()) == {OLD: 7}


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
    fetching = thread(client, flow=flow)
    records = asyncio.run(fetching._fetch_records(client, set(), timeout=1.0))
    assert records == (taken if flow else {})
    assert client.sought == ({} if flow else {FRESH: 3})
    assert (fetching.fetches, fetching.fetched) == ((1, {FRESH: 4, GONE: 9}) if flow else (0, {}))
    asyncio.run(fetching._seek_back())
    assert fetching.fetched == {}, "all of it is fetched again"


def revoking(monkeypatch: pytest.MonkeyPatch, commit: Any, generation: int = 3) -> list[object]:
    """What is done when a partition goes, in order."""
    done: list[object] = []

    async def revoked(_: Any, partitions: Any) -> None:
        done.append(("revoked", partitions))

    async def committing(_: Any, partitions: Any) -> None:
        done.append(("commit", partitions))
        await commit()

    monkeypatch.setattr(driver.Consumer, "on_partitions_revoked", revoked)
    monkeypatch.setattr(driver.Consumer, "commit", committing)
    monkeypatch.setattr(transport, "REVOKED_COMMIT_SECONDS", 0.01)
    consumer = object.__new__(transport._Consumer)
    consumer._thread = thread(Client({}))
    consumer._thread._consumer._coordinator = SimpleNamespace(generation=generation)
    asyncio.run(consumer.on_partitions_revoked({OLD}))
    return done


async def answered() -> None:
    """A commit that the broker takes."""


async def never_answered() -> None:
    await asyncio.Event().wait()


async def deaf() -> None:
    """As Faust's, where another commit is under way: it goes on when it is cancelled."""
    with suppress(asyncio.CancelledError):
        await never_answered()
    await never_answered()


@pytest.mark.parametrize("commit", [answered, never_answered, deaf])
def test_what_is_done_of_a_partition_is_committed_before_it_goes(
    monkeypatch: pytest.MonkeyPatch, commit: Any
) -> None:
    assert revoking(monkeypatch, commit) == [("commit", {OLD}), ("revoked", {OLD})]


def test_an_evicted_member_commits_no_old_acks(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty group would take them, though another member had come further."""
    assert revoking(monkeypatch, answered, generation=-1) == [("revoked", {OLD})]


def test_a_partition_that_is_held_back_stays_so_when_the_buffer_has_room_again() -> None:
    """Faust's own hand on the same tap: it would let a busy room in again after every batch."""
    held, free = TP("turns", 0), TP("turns", 1)
    consumer = object.__new__(transport._Consumer)
    consumer._active_partitions, consumer._paused_partitions = {held, free}, set()
    consumer._buffered_partitions = set()
    consumer.app = SimpleNamespace(in_recovery=False)
    flow = transport.ConsumerFlow(SimpleNamespace(consumer=consumer))
    for partition in (held, free):
        consumer.on_buffer_full(partition)
    flow.pause({held})
    for partition in (held, free):
        consumer.on_buffer_drop(partition)
    assert consumer._active_partitions == {free}
    flow.resume({held})
    assert consumer._active_partitions == {held, free}


def waiting(monkeypatch: pytest.MonkeyPatch, *, flow: bool, seeks: int) -> Any:
    """What is handed on of a fetch, after which so many ways back to what is committed were gone."""

    async def waited(*_: Any) -> Any:
        return {FRESH: ["a record"]}, {FRESH}

    monkeypatch.setattr(driver.Consumer, "_wait_next_records", waited)
    consumer = object.__new__(transport._Consumer)
    consumer.flow_active, consumer._thread = flow, thread(Client({}))
    consumer._thread.taken_in, consumer._thread.seeks = 1, seeks
    return asyncio.run(consumer._wait_next_records(1.0))


def test_what_was_fetched_is_handed_on_though_its_partition_is_paused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert waiting(monkeypatch, flow=True, seeks=1) == ({FRESH: ["a record"]}, None)


def test_what_was_fetched_before_the_way_back_is_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes again, and those before it would be taken for a gap."""
    assert waiting(monkeypatch, flow=True, seeks=2) == ({}, None)


def test_while_the_flow_is_stopped_faust_does_not_go_back_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waiting(monkeypatch, flow=False, seeks=1) == (None, None)


def test_a_fetch_knows_which_way_back_it_came_after(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetched(*_: Any, **__: Any) -> Any:
        return {}

    monkeypatch.setattr(driver.AIOKafkaConsumerThread, "_fetch_records", fetched)
    fetching = thread(Client({OLD: 7}))
    asyncio.run(fetching._seek_back())
    asyncio.run(fetching._fetch_records(Client({}), set(), timeout=1.0))
    assert fetching.taken_in == fetching.seeks == 1


def test_what_a_fetch_takes_that_began_before_the_way_back_is_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever asked for it was told to stop: it would be lost, and the log go on behind it."""
    client = Client({OLD: 7})
    fetching = thread(client)

    async def late(*_: Any, **__: Any) -> Any:
        await fetching._seek_back()
        return {OLD: [SimpleNamespace(offset=7), SimpleNamespace(offset=8)]}

    monkeypatch.setattr(driver.AIOKafkaConsumerThread, "_fetch_records", late)
    client.sought.clear()
    assert asyncio.run(fetching._fetch_records(client, set(), timeout=1.0)) == {}
    assert client.sought == {OLD: 7}
    assert fetching.fetches == 0


def test_commits_follow_acks_alone() -> None:
    """However far Faust believes to have read, and whatever it takes for a gap."""
    consumer = object.__new__(transport._Consumer)
    consumer._acked, consumer._acked_index = defaultdict(list), defaultdict(set)
    consumer._gap, consumer._committed_offset = defaultdict(IntervalTree), defaultdict(lambda: 3)
    asyncio.run(consumer._add_gap(OLD, 4, 9))
    assert consumer._new_offset(OLD) is None
    consumer._acked[OLD] += [3, 4, 6]  # a marker stands between
    consumer._acked_index[OLD] |= {3, 4, 6}
    assert consumer._new_offset(OLD) == 7
    assert consumer._new_offset(OLD) is None
    assert not consumer._acked_index[OLD]
