"""Journal entries as messages, and the records that they stand for."""

from typing import NamedTuple

import msgspec

from tracker.ledger import JournalEntry
from tracker.parsing import parse_keyed
from tracker.records import Record, Refused, record_id

MOST_VERSION = 2**63 - 1  # an integer of SQLite's

_entry = msgspec.json.Decoder(JournalEntry)


class Unreadable(ValueError):
    """A message that is none of ours."""


class Place(NamedTuple):
    """Where a record stands in the turns topic."""

    partition: int
    offset: int


def decoded(raw: bytes | None) -> JournalEntry:
    """A journal entry from its bytes. Raises Unreadable."""
    try:
        entry = _entry.decode(raw or b"")
    except msgspec.MsgspecError as error:
        raise Unreadable(str(error)) from error
    if not 0 < entry.entry.arrival == entry.header.version <= MOST_VERSION:
        raise Unreadable("an entry that is not of its header's version")
    return entry


def place_of(source: str, topic: str) -> Place | None:
    """Where a journal entry says that its record stands; None where that is not in this topic."""
    name, _, place = source.partition("/")
    partition, _, offset = place.partition("/")
    if name != topic or not (partition.isdecimal() and offset.isdecimal()):
        return None
    return Place(int(partition), int(offset))


def record_of(entry: JournalEntry, key: bytes | None, value: bytes | None) -> Record | None:
    """The entry's record, if this message is it.

    Another may stand there: a topic that was made anew counts its offsets from 0 again.
    """
    try:
        record = parse_keyed(key, value)
    except Refused:
        return None
    said = (record.tenant, record.conversation, record_id(record))
    return record if said == (entry.tenant, entry.conversation, entry.entry.id) else None
