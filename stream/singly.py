"""Asking the store of many conversations at once, and of each on its own where it fails on some of them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from stream.store.port import Store, StoreReplaced, StoreUnavailable

IN_A_ROW = 5  # that it failed on, and answered for none between: then it is not they that it fails on

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


class Failing(Exception):
    """The store answers, but not this; its cause says why."""


class Singly:
    """Tells what the store fails on from a store that is away, refuses everything, or was replaced."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._failed = 0  # one after the other

    async def ask(
        self, call: Callable[[Sequence[_Asked]], Awaitable[list[_Answer]]], asked: Sequence[_Asked]
    ) -> list[_Answer | Failing]:
        """What the call answers, in order, or that it fails on this one.

        Raises StoreUnavailable where it fails on all.
        """
        if not asked:
            return []
        try:
            answers: list[_Answer | Failing] = [*await call(asked)]
        except StoreReplaced:
            raise
        except StoreUnavailable as error:
            await self._store.ping()
            if len(asked) == 1:
                return [self._failing(error)]
            return [answer for one in asked for answer in await self.ask(call, [one])]
        self._failed = 0
        return answers

    def _failing(self, error: StoreUnavailable) -> Failing:
        self._failed += 1
        if self._failed >= IN_A_ROW:
            raise error
        failing = Failing(str(error))
        failing.__cause__ = error
        return failing


def sure(answer: _Answer | Failing) -> _Answer:
    """The answer. Raises Failing."""
    if isinstance(answer, Failing):
        raise answer
    return answer
