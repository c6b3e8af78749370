"""What an agent shows of itself: what it has done since its start, and which part it waits for."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

UNRESTORABLE = "Unrestorable"


@dataclass(frozen=True, slots=True)
class Pause:
    """A part that does not answer, and since when (monotonic seconds)."""

    part: str
    since: float


class Vitals:
    """Counted by the agent, read by whoever watches it."""

    def __init__(self) -> None:
        self.finished = 0  # records
        self.refused: Counter[str] = Counter()  # records, by reason
        self.pauses: Counter[str] = Counter()  # by part
        self.paused: Pause | None = None
        self.held: Pause | None = None
        self.joined = False  # whether the group has shared its partitions out to it
        self._tried = 0

    @property
    def signs(self) -> int:
        """Signs of life: it grows with whatever comes to an end. What hangs gives none."""
        return self.finished + self.pauses.total() + self._tried

    def finish(self, records: int) -> None:
        """So many records are finished: every part that they needed answers."""
        self.finished += records
        if records:
            self.paused = None

    def refuse(self, reasons: Iterable[str]) -> None:
        """Records went to the dead letters."""
        self.refused.update(reasons)

    def pause(self, part: str, now: float) -> None:
        """A part does not answer, once more or for the first time."""
        self.pauses[part] += 1
        self.paused = Pause(part, self.paused.since if self.paused else now)

    def rest(self) -> None:
        """Nothing is left that could wait for a part."""
        self.paused = None

    def hold(self, partitions: int, now: float) -> None:
        """So many partitions cannot be restored, once more or for the first time; 0: none."""
        self._tried += 1
        self.held = Pause(UNRESTORABLE, self.held.since if self.held else now) if partitions else None

    def tried(self) -> None:
        """An attempt that finishes nothing came to an end: a search for poison, a batch put back."""
        self._tried += 1
