"""What a rebuild has made of conversations on its way to the store, many at once, and what came of them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from stream.singly import Failing, Singly, sure
from stream.steps import Step
from stream.store.port import Need, Store
from tracker.rebuild import Kept

FLUSH_COMMITS, FLUSH_ENTRIES = 100, 5000  # in one round trip, and what the last commit has beyond


@dataclass(slots=True)
class Report:
    """How many of the run's conversations came to what."""

    rebuilt: int = 0
    left: int = 0  # the store has them at that version or a higher one
    awaited: int = 0  # nothing of them is committed as finished: an agent makes them when it starts
    without_text: int = 0  # rebuilt, but not all texts of their window are there any more
    unfinished: int = 0  # rebuilt beyond what is committed as finished
    failed: int = 0  # told in the log, and left as far as they came


@dataclass(frozen=True, slots=True)
class Room:
    """A conversation that the store lacks in part, and the version that it is to come to."""

    room: bytes
    kept: Kept
    upto: int
    unfinished: bool


class Putting:
    """Commits steps, and counts in `report` what conversations came to by their last ones."""

    def __init__(
        self, store: Store, alone: Callable[[bytes], AbstractContextManager[None]], *, dry: bool
    ) -> None:
        """`alone`: what fails in it fails of this room; `dry`: all is counted as if it were taken."""
        self._store, self._alone, self._dry = store, alone, dry
        self._asking = Singly(store)
        self._batch: list[tuple[Room, Step]] = []
        self.report = Report()

    async def put(self, room: Room, steps: Iterator[Step]) -> None:
        """Commit a room's steps, sooner or later, as long as they are taken. Raises StoreUnavailable."""
        for step in steps:
            self._batch.append((room, step))
            # A last step must not be taken where one before it, at the same version, was not.
            if (step.still or self._full()) and room.room in await self.flush():
                return

    def _full(self) -> bool:
        entries = sum(len(step.commit.entries) for _, step in self._batch)
        return len(self._batch) >= FLUSH_COMMITS or entries >= FLUSH_ENTRIES

    async def flush(self) -> set[bytes]:
        """Commit all that was put; returns the rooms that are not to be gone on with."""
        batch, self._batch = self._batch, []
        commits = [step.commit for _, step in batch]
        taken = [True] * len(commits) if self._dry else await self._asking.ask(self._store.commit, commits)
        ended: set[bytes] = set()
        for (room, step), ok in zip(batch, taken, strict=True):
            goes_on = room.room not in ended
            with self._alone(room.room):
                goes_on = goes_on and self._counted(room, step, ok=sure(ok) or await self._resumed(step))
            if not goes_on:
                ended.add(room.room)
        return ended

    def _counted(self, room: Room, step: Step, *, ok: bool) -> bool:
        """Whether the room can be gone on with."""
        last = step.commit.header.version == room.upto
        if not last and (ok or not step.still):
            return True
        self.report.rebuilt += last and ok
        self.report.left += not ok  # somebody else moved it
        self.report.without_text += ok and step.textless > 0
        self.report.unfinished += last and ok and room.unfinished
        return ok

    async def _resumed(self, step: Step) -> bool:
        """Whether a refused commit is taken without what a rebuild that was ended put there.

        Raises Failing where the conversation is at its version, and yet beyond it.
        """
        records = frozenset(entry.id for entry in step.commit.entries)
        [answer] = await self._asking.ask(self._store.load, [Need(step.commit.key, records=records)])
        loaded = sure(answer)
        if loaded.conversation.header.version != step.commit.expected:
            return False
        if not step.merged:
            raise Failing("it has records beyond its version")
        rest = step.without(loaded.applied)
        if step.still and not rest.entries:
            return True  # all of it, as it was or as later steps left it
        [taken] = await self._asking.ask(self._store.commit, [rest])
        return sure(taken)
