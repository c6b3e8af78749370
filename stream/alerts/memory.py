"""The in-memory twin of the alerts' store."""

from collections.abc import Mapping, Sequence

from stream.alerts.port import Kept, Positions
from stream.store.port import ConversationKey


class MemoryAlertStore:
    """States in this process."""

    def __init__(self) -> None:
        self._kept: dict[ConversationKey, Kept] = {}
        self._positions: dict[str, int] = {}

    async def load(self, keys: Sequence[ConversationKey]) -> list[Kept]:
        """As the port says."""
        return [self._kept.get(key, Kept()) for key in keys]

    async def save(self, changed: Mapping[ConversationKey, Kept]) -> bool:
        """As the port says."""
        moved = [key for key, kept in changed.items() if self._kept.get(key, Kept()).version != kept.version]
        self._kept |= {
            key: Kept(kept.state, kept.version + 1) for key, kept in changed.items() if key not in moved
        }
        return not moved

    async def positions(self, partitions: Sequence[str]) -> dict[str, int]:
        """As the port says."""
        return {name: self._positions[name] for name in partitions if name in self._positions}

    async def place(self, positions: Positions) -> None:
        """As the port says."""
        self._positions |= positions

    def accept(self) -> None:
        """As the port says."""

    async def close(self) -> None:
        """As the port says."""
