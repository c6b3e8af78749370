"""A room of the demo: its records through Kafka, one by one, and what comes back on the screen."""

import asyncio
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from rich.console import Console
from rich.markup import escape

from stream.outbox import FLIPS, JOURNAL, of_record
from stream.platforms import open_records
from stream.sender import Sender
from stream.settings import Settings
from stream.tail import Tail, following
from tracker.events import Event
from tracker.ledger import JournalEntry
from tracker.records import CreateTurn, DeclareTarget, Record, Refused, record_id
from tracker.stances import Stance

TURN_SECONDS = 180.0  # until a turn must have come back; an explanation on a busy CPU takes a minute
READING_CHARACTERS = 60.0  # a second, at pace 1
LONGEST_READING = 1.5
COLOUR: Mapping[Stance, str] = {
    Stance.UNKNOWN: "dim",
    Stance.SUPPORT: "green",
    Stance.NEUTRAL: "yellow",
    Stance.OPPOSE: "red",
}


class Stuck(Exception):
    """A turn did not come back."""


@dataclass(frozen=True, slots=True)
class Room:
    """A conversation to be played."""

    name: str
    records: Sequence[Record]

    @classmethod
    def read(cls, name: str, content: bytes) -> "Room":
        """From a benchmark line. Raises Refused, which a shipped room does not."""
        lines = [line.result for line in open_records(io.BytesIO(content))]
        for result in lines:
            if isinstance(result, Refused):
                raise result
        return cls(name, [result for result in lines if not isinstance(result, Refused)])


@dataclass(slots=True)
class Played:
    """What came of a room."""

    name: str
    turns: int = 0
    flips: int = 0
    established: int = 0
    seconds: list[float] = field(default_factory=list)  # from producing a turn to its journal entry


async def play(settings: Settings, rooms: Sequence[Room], console: Console, pace: float) -> list[Played]:
    """Play the rooms through the settings' run, one after the other. Raises Stuck."""
    sender = Sender(settings)
    try:
        async with following(settings, [JOURNAL, FLIPS]) as tail:
            return [await _Player(room, sender, tail, console, pace).play() for room in rooms]
    finally:
        await sender.close()


class _Player:
    """One room: what is known of its holders, and where its screen stands."""

    def __init__(self, room: Room, sender: Sender, tail: Tail, console: Console, pace: float) -> None:
        self._room, self._sender, self._console, self._pace = room, sender, console, pace
        self._messages = tail.messages()
        self._stances: dict[str, Stance] = {}
        self.played = Played(room.name)

    async def play(self) -> Played:
        """Produce every record, wait for what it led to, show it."""
        for record in self._room.records:
            if isinstance(record, DeclareTarget):
                self._console.print(f"\n[bold]{self._room.name}[/bold]  {escape(record.proposition)}")
            began = time.monotonic()
            await self._sender.send([of_record(record)])
            entry, flips = await self._answered(record_id(record))
            if isinstance(record, CreateTurn):
                self.played.seconds.append(time.monotonic() - began)
                self._show(record, entry, flips)
                reading = min(len(record.text) / READING_CHARACTERS, LONGEST_READING) * self._pace
                await asyncio.sleep(max(0.0, reading - (time.monotonic() - began)))
        return self.played

    async def _answered(self, ident: str) -> tuple[JournalEntry, list[Event]]:
        """The record's journal entry, and its flips as they left the flips topic."""
        entry: JournalEntry | None = None
        flips: list[Event] = []
        try:
            async with asyncio.timeout(TURN_SECONDS):
                async for topic, value in self._messages:
                    if topic == FLIPS:
                        flips.append(msgspec.json.decode(value, type=Event))
                    elif (found := msgspec.json.decode(value, type=JournalEntry)).entry.id == ident:
                        entry = found
                    if entry and len(entry.entry.explanations) == len(flips):  # every flip is explained
                        break
        except TimeoutError:
            raise Stuck(
                f"room {self._room.name}: record {ident} did not come back in {TURN_SECONDS:.0f} s"
            ) from None
        assert entry is not None
        return entry, flips

    def _show(self, record: CreateTurn, entry: JournalEntry, flips: Sequence[Event]) -> None:
        self.played.turns += 1
        self.played.flips += len(flips)
        self.played.established += len(entry.states) - len(flips)
        self._stances |= {moved.holder: moved.state.stance for moved in entry.states}
        stance = self._stances.get(record.holder, Stance.UNKNOWN)
        media = "".join(f" [{item.modality}: {item.description}]" for item in record.media)
        self._console.print(
            f"[{COLOUR[stance]}]{stance:>8}[/]  [bold]{escape(record.holder)}[/]: {escape(record.text)}"
            f"[dim]{escape(media)}[/]",
            highlight=False,
        )
        for event in flips:
            self._show_flip(event)

    def _show_flip(self, event: Event) -> None:
        data = event.data
        trigger = (
            ""
            if data.trigger is msgspec.UNSET
            else f", {data.trigger.kind}, turn {', '.join(data.trigger.turns)}"
        )
        marks = f" ({', '.join(data.marks)})" if data.marks else ""
        self._console.print(
            f"          [reverse] FLIP [/] {escape(data.holder)}: {data.before} -> {data.after}"
            f"{escape(trigger)}[dim]{escape(marks)}\n               {escape(str(data.rationale or ''))}[/]",
            highlight=False,
        )
