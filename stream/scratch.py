"""What a rebuild has read, in a temporary file that ends with it: memory holds one conversation at a time.

A conversation is a room here, by its Kafka key; all that it has of a run is looked up by it.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import unquote

import msgspec

from stream.entries import MOST_VERSION, Place, Unreadable, decoded
from tracker import keys, rebuild
from tracker.ledger import HeaderRow, JournalEntry, StateRow
from tracker.merging import Rows
from tracker.rebuild import Course

PAGE = 10_000  # offsets at once
CACHE_KIB = 32 * 1024

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE rooms (room BLOB PRIMARY KEY, upto INTEGER, last INTEGER DEFAULT 0) WITHOUT ROWID;
CREATE INDEX in_order ON rooms (last, room);
CREATE TABLE journal (room BLOB, arrival INTEGER, source TEXT, value BLOB, PRIMARY KEY (room, arrival))
    WITHOUT ROWID;
CREATE TABLE states (room BLOB, key BLOB, version INTEGER, value BLOB, PRIMARY KEY (room, key))
    WITHOUT ROWID;
CREATE TABLE records (partition INTEGER, offset INTEGER, key BLOB, value BLOB, looked INTEGER DEFAULT 0,
    PRIMARY KEY (partition, offset)) WITHOUT ROWID;
"""
# A lower version is ignored, and so is the same one after its tombstone: it was sent again.
_STATE = """
INSERT INTO states VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET version = excluded.version,
    value = excluded.value WHERE excluded.version > version - (value IS NOT NULL)
"""
_ROOM = """
INSERT INTO rooms (room, last) VALUES (?, ?) ON CONFLICT DO UPDATE SET last = MAX(last, excluded.last)
"""
_TOMBSTONE = "INSERT INTO states VALUES (?, ?, 0, NULL) ON CONFLICT DO UPDATE SET value = NULL"

_header = msgspec.json.Decoder(HeaderRow)
_state = msgspec.json.Decoder(StateRow)

Raw = tuple[bytes | None, bytes | None]  # a message's key and value


def _version(raw: bytes, *, header: bool) -> int:
    """The version of a row of the states topic. Raises Unreadable."""
    try:
        version = _header.decode(raw).header.version if header else _state.decode(raw).version
    except msgspec.MsgspecError as error:
        raise Unreadable(str(error)) from error
    if not 0 <= version <= MOST_VERSION:
        raise Unreadable("a row of no version")
    return version


class Scratch:
    """A run's journal, states and the wanted records of its turns topic; made by `scratch`."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._database.executescript(_SCHEMA)
        self._database.execute("BEGIN")  # never ended: nothing of it is to outlive the connection
        self._taken = 0  # journal entries

    def journal(self, entries: Iterable[tuple[JournalEntry, bytes]]) -> None:
        """Take entries and their bytes, in the order of the log: a later one of the same arrival counts."""
        rows = [
            (keys.conversation_key(one.tenant, one.conversation), one.entry.arrival, one.source, raw)
            for one, raw in entries
        ]
        last = {room: self._taken + place for place, (room, *_) in enumerate(rows, 1)}
        self._taken += len(rows)
        self._many(_ROOM, [*last.items()])
        self._many("INSERT OR REPLACE INTO journal VALUES (?, ?, ?, ?)", rows)

    def row(self, key: bytes, value: bytes | None) -> None:
        """Take a row of the states topic, None for a tombstone. Raises Unreadable."""
        parts = key.split(b"/")
        room = b"/".join(parts[:2])
        if not key.isascii() or len(parts) not in ((4,) if value is None else (2, 4)):
            raise Unreadable("neither a header's key nor a state's")
        try:
            keys.parse_conversation_key(room)
        except keys.MalformedKey as error:
            raise Unreadable(str(error)) from error
        statement, values = _TOMBSTONE, tuple[Any, ...]()
        if value is not None:
            statement, values = _STATE, (_version(value, header=key == room), value)
        self._database.execute(_ROOM, (room, 0))
        self._database.execute(statement, (room, key, *values))

    def rooms(self, size: int) -> Iterator[list[bytes]]:
        """All rooms, so many at once: first those of which the journal told last the longest ago.

        What is worked on in this order and broken off leaves a journal of whose end all is lacking.
        """
        statement = "SELECT last, room FROM rooms WHERE (last, room) > (?, ?) ORDER BY 1, 2 LIMIT ?"
        last: tuple[int, bytes] = -1, b""
        while page := self._all(statement, *last, size):
            yield [room for _, room in page]
            last = page[-1]

    def drop(self, room: bytes) -> None:
        """Name a room no more among all of them."""
        self._database.execute("DELETE FROM rooms WHERE room = ?", (room,))

    def rows(self, room: bytes) -> Rows:
        """What the states topic holds of a room."""
        header, states, ended = None, [], []
        for key, value in self._all("SELECT key, value FROM states WHERE room = ?", room):
            if value is None:
                _, _, holder, target = map(unquote, key.decode().split("/"))
                ended.append((holder, target))
            elif key == room:
                header = _header.decode(value).header
            else:
                states.append(_state.decode(value))
        return Rows(header, tuple(states), tuple(ended))

    def course(self, room: bytes, after: int, upto: int) -> Course:
        """A room's entries between two versions, the second one included."""
        return rebuild.in_order(self.entries(room, after, upto))

    def entries(self, room: bytes, after: int = 0, upto: int = MOST_VERSION) -> Iterator[JournalEntry]:
        """The same by arrival, one at a time."""
        statement = """
            SELECT value FROM journal WHERE room = ? AND arrival > ? AND arrival <= ? ORDER BY arrival
        """
        with closing(self._database.execute(statement, (room, after, upto))) as found:
            for (value,) in found:
                yield decoded(value)

    def reached(self, room: bytes, after: int, upto: int, most: int) -> int:
        """The version that at most so many entries reach; what is left to the second one has some, too."""
        statement = """
            SELECT arrival FROM journal WHERE room = ? AND arrival > ? AND arrival <= ? ORDER BY arrival
            LIMIT 2 OFFSET ?
        """
        found = self._column(statement, room, after, upto, most - 1)
        return int(found[0]) if len(found) > 1 else upto

    def count(self, room: bytes, after: int, upto: int) -> int:
        """How many entries there are between two versions, the second one included."""
        statement = "SELECT COUNT(*) FROM journal WHERE room = ? AND arrival > ? AND arrival <= ?"
        [count] = self._column(statement, room, after, upto)
        return int(count)

    def newest(self, room: bytes) -> int:
        """The highest version that the topics tell of."""
        statement = """
            SELECT MAX(version) FROM (SELECT IFNULL(MAX(arrival), 0) AS version FROM journal WHERE room = ?1
            UNION ALL SELECT version FROM states WHERE room = ?1 AND key = ?1)
        """
        return int(self._column(statement, room)[0])

    def sources(self, room: bytes) -> Iterator[tuple[int, str]]:
        """Arrival and source of a room's entries, the newest first."""
        statement = "SELECT arrival, source FROM journal WHERE room = ? ORDER BY arrival DESC"
        with closing(self._database.execute(statement, (room,))) as found:
            yield from found

    def entry(self, room: bytes, arrival: int) -> JournalEntry | None:
        """A room's entry."""
        return self.course(room, arrival - 1, arrival).get(arrival)

    def cut(self, room: bytes, upto: int | None) -> None:
        """Keep the version up to which a room is to be rebuilt; None: the newest."""
        self._database.execute("UPDATE rooms SET upto = ? WHERE room = ?", (upto, room))

    def upto(self, room: bytes) -> int | None:
        """The version that `cut` kept."""
        return self._column("SELECT upto FROM rooms WHERE room = ?", room)[0]  # type: ignore[no-any-return]

    def want(self, places: Iterable[Place]) -> None:
        """Have records looked up, each once."""
        self._many("INSERT OR IGNORE INTO records (partition, offset) VALUES (?, ?)", list(places))

    def wanted(self, partition: int) -> Iterator[list[int]]:
        """The offsets of a partition that are still to be looked up, in order; then they count as so."""
        statement = """
            SELECT offset FROM records WHERE partition = ? AND offset > ? AND NOT looked ORDER BY 1 LIMIT ?
        """
        last = -1
        while page := self._column(statement, partition, last, PAGE):
            yield page
            last = page[-1]
        self._database.execute("UPDATE records SET looked = 1 WHERE partition = ?", (partition,))

    def found(self, records: Iterable[tuple[Place, Raw]]) -> None:
        """Take records that were looked up."""
        rows = [(*raw, *place) for place, raw in records]
        self._many("UPDATE records SET key = ?, value = ? WHERE partition = ? AND offset = ?", rows)

    def record(self, place: Place) -> Raw:
        """A record as it was found; twice None where it was not."""
        statement = "SELECT key, value FROM records WHERE partition = ? AND offset = ?"
        found: list[Raw] = self._all(statement, *place)
        return found[0] if found else (None, None)

    def _many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._database.executemany(statement, rows)

    def _all(self, statement: str, *values: Any) -> list[Any]:
        return self._database.execute(statement, values).fetchall()

    def _column(self, statement: str, *values: Any) -> list[Any]:
        return [row[0] for row in self._all(statement, *values)]


@contextmanager
def scratch() -> Iterator[Scratch]:
    """A Scratch while the block runs. Raises sqlite3.Error, in all that it does, where there is no room."""
    # To SQLite an empty name is a file of its own that nobody else sees, and that ends with the connection.
    with closing(sqlite3.connect("", isolation_level=None)) as database:
        yield Scratch(database)
