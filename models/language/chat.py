"""A language model one can talk to: messages in, words or a choice out, wherever it runs.

Reasoning by roles (`models/reasoning/`) stands on this port: a backbone in this process and a server behind
HTTP answer it alike. Synchronous, as engines are.
"""

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str


Talk = tuple[Message, ...]


def talk(system: str, user: str) -> Talk:
    """The usual two messages: the standing instruction, and what is asked."""
    return Message("system", system), Message("user", user)


@runtime_checkable
class Chat(Protocol):
    """Answers talks, one each and in order. Raises ReaderUnavailable where the model does not answer."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    @property
    def revision(self) -> str:
        """Its revision; "" where nobody tells."""
        ...

    def write(self, talks: Sequence[Talk], limit: int) -> list[str]:
        """Words, at most `limit` tokens, stripped; "" where the model has nothing to say."""
        ...

    def choose(self, talks: Sequence[Talk], labels: Sequence[str]) -> list[list[float]]:
        """A probability a label, summing to 1. A model that only names one gives it 1."""
        ...
