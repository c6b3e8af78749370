import asyncio

import pytest

from models.circuit import Circuit, CircuitOpen, CircuitPolicy
from models.guard import Ended, Guard
from tests.models.worker.fakes import PATIENCE, cooled


class Gone(Exception):
    """Of a part that is away."""


def meaning(error: BaseException) -> Ended:
    return Ended.FAILED if isinstance(error, Gone) else Ended.CANCELLED


def fail(guard: Guard, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(Gone), guard.attempt():
            raise Gone


@pytest.fixture
def heard() -> list[object]:
    return []


@pytest.fixture
def guard(heard: list[object]) -> Guard:
    return Guard(
        CircuitPolicy(failures=2, open_for=PATIENCE),
        meaning,
        on_end=heard.append,
        on_move=lambda before, after: heard.append((before, after)),
    )


def test_its_owner_says_what_an_error_means_and_hears_how_all_ended(
    guard: Guard, heard: list[object]
) -> None:
    with guard.attempt():
        pass
    with pytest.raises(KeyError), guard.attempt():
        raise KeyError
    fail(guard, 2)
    assert heard == [
        Ended.ANSWERED,
        Ended.CANCELLED,
        Ended.FAILED,
        Ended.FAILED,
        (Circuit.CLOSED, Circuit.OPEN),
    ]
    with pytest.raises(CircuitOpen), guard.attempt():
        raise AssertionError("no attempt is let through")


async def test_who_comes_with_a_trial_goes_the_way_it_went(guard: Guard) -> None:
    fail(guard, 2)
    cooled(guard)
    with guard.attempt():
        waiting = [asyncio.ensure_future(guard.settled()) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(one.done() for one in waiting)
    await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE)
    assert guard.breaker.state is Circuit.CLOSED


async def test_who_waited_for_a_trial_that_was_cancelled_tries_one_at_a_time(guard: Guard) -> None:
    fail(guard, 2)
    cooled(guard)
    trials = 0

    async def come() -> None:
        nonlocal trials
        await guard.settled()
        with guard.attempt():
            trials += guard.breaker.state is Circuit.HALF_OPEN
            await asyncio.sleep(0)

    with pytest.raises(KeyError), guard.attempt():
        waiting = [asyncio.ensure_future(come()) for _ in range(3)]
        await asyncio.sleep(0)
        raise KeyError
    await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE)
    assert trials == 1
