import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.worker.lanes import BatchLimits, Call, Lane

LIMITS = BatchLimits(requests=4, tokens=10)


@pytest.fixture
def lane() -> Lane[int, int]:
    return Lane("observe", list, int)


def queued(lane: Lane[int, int], *tokens: int, arrived: float = 0.0, counted: bool = True) -> Call[int, int]:
    call: Call[int, int] = Call(tokens, asyncio.Future(loop=asyncio.new_event_loop()), arrived)
    call.answered.get_loop().close()
    lane.add(call)
    if counted:
        for item in lane.uncounted(BatchLimits(requests=10_000)):
            item.tokens = item.request
    return call


def test_a_batch_is_the_beginning_that_fits(lane: Lane[int, int]) -> None:
    queued(lane, 4, 4)
    queued(lane, 4, 1, 1, 1, 1)
    assert lane.full(LIMITS)
    assert [item.request for item in lane.take(LIMITS)] == [4, 4]
    assert [item.request for item in lane.take(LIMITS)] == [4, 1, 1, 1]
    assert not lane.full(LIMITS)
    assert [item.request for item in lane.take(LIMITS)] == [1]
    assert lane.take(LIMITS) == []


def test_one_too_large_for_any_batch_goes_alone(lane: Lane[int, int]) -> None:
    queued(lane, 99, 1)
    assert [item.request for item in lane.take(LIMITS)] == [99]


def test_what_was_not_counted_is_not_taken(lane: Lane[int, int]) -> None:
    queued(lane, 1, counted=True)
    queued(lane, 1, counted=False)
    assert len(lane.uncounted(LIMITS)) == 1
    assert len(lane.take(LIMITS)) == 1
    assert lane.take(LIMITS) == []


def test_forgetting_a_call_takes_out_that_call_alone(lane: Lane[int, int]) -> None:
    queued(lane, 1, arrived=3.0)
    gone = queued(lane, 2, 2, arrived=4.0)
    queued(lane, 3, arrived=5.0)
    lane.forget(gone)
    assert lane.oldest == 3.0
    assert [item.request for item in lane.take(LIMITS)] == [1, 3]
    assert lane.oldest == float("inf")


def test_a_call_is_answered_once_and_in_order_when_its_last_outcome_is_in() -> None:
    async def put() -> list[object]:
        call: Call[int, str] = Call([1, 2, 3], asyncio.get_running_loop().create_future(), 0.0)
        for index in (2, 0):
            call.put(index, f"answer {index}")
            assert not call.answered.done()
        call.put(1, "answer 1")
        call.put(1, "late")
        return [*await call.answered]

    assert asyncio.run(put()) == ["answer 0", "answer 1", "answer 2"]


@given(st.lists(st.integers(0, 15), max_size=40))
def test_batches_keep_the_order_and_the_limits(tokens: list[int]) -> None:
    lane: Lane[int, int] = Lane("observe", list, int)
    queued(lane, *tokens)
    seen: list[int] = []
    while batch := [item.request for item in lane.take(LIMITS)]:
        assert len(batch) <= LIMITS.requests
        assert len(batch) == 1 or sum(batch) <= LIMITS.tokens
        seen += batch
    assert seen == tokens
