"""A memory of the conversations heard of last, so that a file of any size is read in bounded memory."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

V = TypeVar("V")

LIMIT = 65_536  # conversations; about 20 MB


class Recent(Generic[V]):
    """A value for each of the conversations (tenant and name) that were put last."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._values: OrderedDict[tuple[str, str], V] = OrderedDict()

    def get(self, conversation: tuple[str, str]) -> V | None:
        """The conversation's value, if it is remembered."""
        return self._values.get(conversation)

    def put(self, conversation: tuple[str, str], value: V) -> bool:
        """Remember a value; whether the conversation is new. The one put longest ago is forgotten."""
        new = conversation not in self._values
        self._values[conversation] = value
        self._values.move_to_end(conversation)
        if len(self._values) > self._limit:
            self._values.popitem(last=False)
        return new

    def take(self, conversation: tuple[str, str]) -> V | None:
        """As `get`; it is not remembered any more."""
        return self._values.pop(conversation, None)

    def __iter__(self) -> Iterator[V]:
        return iter(self._values.values())
