"""What is looked up of records that come again is bounded; all else is tested with the rebuild."""

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from stream import unfinished
from stream.entries import decoded
from stream.scratch import Scratch, scratch
from tests.stream.fakes import turn
from tracker import keys, records
from tracker.conversation import Header
from tracker.ledger import JournalEntry, LedgerEntry
from tracker.records import record_id

TURNS = "volteface.turns"
ROOMS = {"a": 0, "b": 1}  # and their partitions


class Log:
    """A turns topic of two partitions, of which the group has committed as told."""

    turns = TURNS

    def __init__(self, *floors: int) -> None:
        self.floors, self.looked_up = floors, list[tuple[int, int]]()

    def partitions(self, name: str) -> list[Any]:
        return [SimpleNamespace(topic=TURNS, partition=number) for number in range(2)]

    async def finished(self) -> dict[int, int]:
        return dict(enumerate(self.floors))

    async def records(self, partition: int, offsets: Sequence[int]) -> AsyncIterator[list[Any]]:
        self.looked_up += [(partition, offset) for offset in offsets]
        [room] = [room for room, number in ROOMS.items() if number == partition]
        yield [SimpleNamespace(partition=partition, offset=one, **message(room, one)) for one in offsets]


def message(room: str, offset: int) -> dict[str, bytes]:
    return {
        "key": keys.conversation_key("default", room),
        "value": records.encode(turn(str(offset), room=room)),
    }


def fill(found: Scratch, count: int) -> None:
    for room, partition in ROOMS.items():
        for offset in range(count):
            record = turn(str(offset), room=room)
            entry = LedgerEntry(id=record_id(record), op="create", arrival=offset + 1, sent_at=record.sent_at)
            source, header = f"{TURNS}/{partition}/{offset}", Header(version=offset + 1)
            about = {"tenant": "default", "run": "r", "conversation": room}
            raw = msgspec.json.encode(JournalEntry(**about, source=source, entry=entry, header=header))
            found.journal([(decoded(raw), raw)])


async def find(log: Any, found: Scratch) -> list[int | None]:
    """The versions to which the rooms are cut."""
    await unfinished.find(log, found, lambda room: contextlib.nullcontext())
    return [found.upto(keys.conversation_key("default", room)) for room in ROOMS]


@pytest.fixture
def found() -> Iterator[Scratch]:
    with scratch() as made:
        yield made


async def test_what_comes_again_is_cut_off(found: Scratch) -> None:
    fill(found, 9)
    log = Log(7, 9)
    assert await find(log, found) == [7, None]
    assert sorted(log.looked_up) == [(0, 7), (0, 8)]


@pytest.mark.parametrize("most", [8, 9])
async def test_where_nothing_is_committed_any_more_what_is_looked_up_is_bounded(
    found: Scratch, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "MOST", most)
    fill(found, 9)
    log = Log(0, 8)
    with capture_logs() as logged:
        assert await find(log, found) == [0 if most == 9 else None, 8]
    assert sorted(log.looked_up) == [(0, offset) for offset in range(9) if most == 9] + [(1, 8)]
    told = [{"event": "rebuild.too_much_unfinished", "partition": 0, "at_least": 9, "log_level": "warning"}]
    assert logged == (told if most == 8 else [])
