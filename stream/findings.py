"""What a backtest finds: every flip for the counts, every difference in full; in a file that ends with it."""

import datetime as dt
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Literal

import msgspec

from tracker.backtest import Change, Flip
from tracker.events import TargetRef
from tracker.observations import Mark
from tracker.stances import Stance

By = Literal["language", "proposition"]

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE flips (change TEXT, language TEXT, proposition TEXT, looks_false INTEGER, stale INTEGER,
    difference BLOB);
"""
_SUMS = (*(f"change = '{change}'" for change in Change), "looks_false", "stale")
_COLUMNS = ", ".join(f"IFNULL(SUM({one}), 0)" for one in _SUMS)


class Told(msgspec.Struct, frozen=True, rename={"before": "from", "after": "to"}):
    """A flip as one policy gives it."""

    before: Stance
    after: Stance
    confidence: float
    marks: tuple[Mark, ...]
    taken_back: bool  # soon: the holder's next flip goes back

    @classmethod
    def of(cls, flip: Flip | None) -> "Told | None":
        """The same, or nothing of no flip."""
        if flip is None:
            return None
        marks = tuple(dict.fromkeys((*flip.entry.marks, *flip.observation.marks)))
        return cls(flip.before, flip.after, flip.confidence, marks, flip.taken_back)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A flip in the base and under the candidate; None where there is none."""

    change: Change
    tenant: str
    run: str
    conversation: str
    holder: str
    target: TargetRef
    turn: str
    sent_at: dt.datetime
    language: str
    base: Told | None
    candidate: Told | None
    looks_false: bool
    stale: bool  # live would have asked the model again
    partial: bool  # the journal does not tell of all of the conversation


class Count(msgspec.Struct, frozen=True):
    """Flips of one language, of one target's proposition, or all."""

    name: str
    stands: int
    appears: int
    vanishes: int
    changes: int
    looks_false: int
    stale: int


class Findings:
    """The flips of a backtest; made by `findings`."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._database.executescript(_SCHEMA)

    def add(self, found: Iterable[Difference]) -> None:
        """Take flips; those that stand are counted alone."""
        rows = [
            (
                one.change,
                one.language,
                one.target.proposition,
                one.looks_false,
                one.stale,
                None if one.change is Change.STANDS else msgspec.json.encode(one),
            )
            for one in found
        ]
        self._database.executemany("INSERT INTO flips VALUES (?, ?, ?, ?, ?, ?)", rows)

    def all(self) -> Count:
        """The counts of all flips."""
        [row] = self._database.execute(f"SELECT 'all', {_COLUMNS} FROM flips")
        return Count(*row)

    def by(self, what: By, most: int) -> list[Count]:
        """The counts by language or proposition, those with the most differences first."""
        statement = f"""
            SELECT {what}, {_COLUMNS} FROM flips GROUP BY 1
            ORDER BY SUM(change != '{Change.STANDS}') DESC, COUNT(*) DESC, 1 LIMIT ?
        """
        return [Count(*row) for row in self._database.execute(statement, (most,))]

    def differences(self, most: int = -1) -> Iterator[Difference]:
        """Those that look false first, then as they were found."""
        statement = """
            SELECT difference FROM flips WHERE difference IS NOT NULL ORDER BY looks_false DESC, rowid LIMIT ?
        """
        with closing(self._database.execute(statement, (most,))) as found:
            for (raw,) in found:
                yield msgspec.json.decode(raw, type=Difference)


@contextmanager
def findings() -> Iterator[Findings]:
    """Findings while the block runs. Raises sqlite3.Error, in all that they do, where there is no room."""
    # To SQLite an empty name is a file of its own that nobody else sees, and that ends with the connection.
    with closing(sqlite3.connect("", isolation_level=None)) as database:
        yield Findings(database)
