"""Where the alerts' states live: the port. A call raises StoreUnavailable where the store does not answer."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from stream.store.port import ConversationKey
from tracker.alerts import State

Positions = Mapping[str, int]  # by partition, as `<topic>/<number>`: the next offset to read


class Kept(msgspec.Struct, frozen=True):
    """A conversation's state, and its version: how often it was stored."""

    state: State = State()
    version: int = 0


class AlertStore(Protocol):
    """States of a run's conversations, and how far the partitions are read whose events they hold.

    A call raises StoreUnavailable where the store does not answer, and StoreReplaced where what was stored
    may be gone, until `accept`.
    """

    async def load(self, keys: Sequence[ConversationKey]) -> list[Kept]:
        """Their states, in order; a fresh one at version 0 where nothing is kept."""
        ...

    async def save(self, changed: Mapping[ConversationKey, Kept]) -> bool:
        """Keep states, each with the version that was loaded; whether none of them had moved meanwhile.

        Each is kept or not by itself: those that had moved are left as they are.
        """
        ...

    async def positions(self, partitions: Sequence[str]) -> dict[str, int]:
        """Where reading goes on; nothing for a partition that is not known."""
        ...

    async def place(self, positions: Positions) -> None:
        """Keep where reading goes on, once the states before it are kept."""
        ...

    def accept(self) -> None:
        """Go on with the store as it is."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...
