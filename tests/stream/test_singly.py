"""A store that fails on some is told from one that is away."""

from collections.abc import Sequence

import pytest

from stream import singly
from stream.singly import Failing, Singly, sure
from stream.store.memory import MemoryStore
from stream.store.port import StoreReplaced, StoreUnavailable


class Away(MemoryStore):
    async def ping(self) -> None:
        raise StoreUnavailable("away")


async def doubled(numbers: Sequence[int]) -> list[int]:
    """Fails on odd numbers."""
    if any(number % 2 for number in numbers):
        raise StoreUnavailable("odd") from ValueError("odd")
    return [2 * number for number in numbers]


async def test_what_it_fails_on_is_found_and_all_else_is_answered() -> None:
    asking = Singly(MemoryStore("r"))
    assert await asking.ask(doubled, []) == []
    assert await asking.ask(doubled, [2, 4]) == [4, 8]
    first, failing, last = await asking.ask(doubled, [2, 3, 4])
    assert (first, sure(last)) == (4, 8)
    with pytest.raises(Failing, match="odd") as raised:
        sure(failing)
    assert isinstance(raised.value.__cause__, StoreUnavailable)


async def test_a_store_that_is_away_is_away() -> None:
    with pytest.raises(StoreUnavailable, match="away"):
        await Singly(Away("r")).ask(doubled, [2, 3])


async def test_a_store_that_was_replaced_is_not_asked_again() -> None:
    async def replaced(numbers: Sequence[int]) -> list[int]:
        raise StoreReplaced("another")

    with pytest.raises(StoreReplaced):
        await Singly(MemoryStore("r")).ask(replaced, [1])


async def test_a_store_that_fails_on_one_after_the_other_refuses_all() -> None:
    asking = Singly(MemoryStore("r"))
    odd = [2 * number + 1 for number in range(singly.IN_A_ROW)]
    for numbers in ([*odd[1:], 2], [4], odd[1:]):
        await asking.ask(doubled, numbers)
    with pytest.raises(StoreUnavailable, match="odd"):
        await asking.ask(doubled, odd[:1])
