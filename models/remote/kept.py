"""Answers kept for a while by a hash of their request: no turn's text stays because of it.

A rationale names people and may quote them, so that an answer goes when its time is over even where no other
call comes: what is erased everywhere else must not live on here.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

Request = TypeVar("Request", bound=msgspec.Struct)
Result = TypeVar("Result")

_Answers = OrderedDict[bytes, tuple[float, Result]]  # oldest first, each with when it goes


class Kept(Generic[Request, Result]):
    """Asks once for what is asked again soon; keeps the `most` last answers, each for so many seconds."""

    def __init__(self, read: Callable[[Request], Awaitable[Result]], most: int, seconds: float) -> None:
        self._read, self._most, self._seconds = read, most, seconds
        self._answers: _Answers[Result] = OrderedDict()

    async def __call__(self, request: Request) -> Result:
        """The answer to a request."""
        key = hashlib.sha256(msgspec.json.encode(request)).digest()
        if key in self._answers:
            return self._answers[key][1]
        answer = await self._read(request)
        self._keep(key, answer)
        return answer

    def _keep(self, key: bytes, answer: Result) -> None:
        until = asyncio.get_running_loop().time() + self._seconds
        is_first = not self._answers
        self._answers[key] = until, answer
        self._answers.move_to_end(key)
        if is_first:
            _forget(self._answers)
        if len(self._answers) > self._most:
            self._answers.popitem(last=False)


def _forget(answers: "_Answers[Result]") -> None:
    """Drops what is over, and comes again for the next; holds the answers alone, and no engine alive."""
    loop = asyncio.get_running_loop()
    while answers:
        until, _ = next(iter(answers.values()))
        if until > loop.time():
            loop.call_at(until, _forget, answers)
            return
        answers.popitem(last=False)
