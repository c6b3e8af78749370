"""Good records of every kind, made of the open dataset's dialogues: the same every time for a name."""

import datetime as dt
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from models.datasets.dialogue import Dialogue
from models.datasets.open import open_dataset
from tracker import keys
from tracker.records import (
    ClearTurns,
    CreateTurn,
    DeclareTarget,
    DeleteTurn,
    EditTurn,
    EraseHolder,
    HolderKind,
    OverrideStance,
    Record,
    TargetStatus,
)
from tracker.stances import Expressed, Stance

BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
ROOM_RECORDS = 60
LATE, BOTS, REVISED, RETIRED, REPLACING, LIFTED, EXPIRING = 0.05, 0.03, 0.3, 0.1, 0.1, 0.2, 0.3
CROWDED = 3.0  # how much more often the first room is spoken in: there are more pins than it may have
PROPOSITIONS = 5  # of a room; three may be active
# What engine `rule` reads: the dataset's own labels move the states.
MARKS = {Expressed.SUPPORT: "+1 ", Expressed.OPPOSE: "-1 ", Expressed.NEUTRAL: "+0 "}
ENDINGS = ("", "", "/thread", " %2F{x}:*?[", "\u202etfel", "\u200b\u200d", " 🦀é", "\x00", "x" * 450)
TENANTS = ("default", "default", "default", "acme/é")


@lru_cache(maxsize=1)
def dialogues() -> tuple[Dialogue, ...]:
    """All that the project ships."""
    return tuple(open_dataset())


def spoken(name: str, count: int) -> Iterator[Record]:
    """Rooms' records, mixed; every room's name begins with `name`, and no room is another run's."""
    chance = random.Random(name)
    rooms = [_Room(chance, name, number) for number in range(max(2, count // ROOM_RECORDS))]
    weights = [CROWDED, *(1.0 for _ in rooms[1:])]
    for number, room in enumerate(chance.choices(rooms, weights, k=count)):
        yield room.record(number)


@dataclass
class _Room:
    """A conversation in which a dialogue is had again and again, with corrections; the first is for pins."""

    chance: random.Random
    run: str
    number: int
    dialogue: Dialogue = field(init=False)
    turns: int = 0
    sent: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dialogue = self.chance.choice(dialogues())

    def record(self, number: int) -> Record:
        """The next record; `number` is its place among all rooms' records."""
        late = self.chance.uniform(0, 600) if self.chance.random() < LATE else 0
        common = {
            "tenant": TENANTS[self.number % len(TENANTS)],
            "conversation": f"{self.run} {self.number}{ENDINGS[self.number % len(ENDINGS)]}",
            "sent_at": BEGIN + dt.timedelta(seconds=number - int(late)),
        }
        made = self._target if not self.sent else self.chance.choices(*self._kinds())[0]
        record = made(number, common)
        self.sent.append(record)
        return record

    def _kinds(self) -> tuple[list[Callable[[int, dict[str, Any]], Record]], list[int]]:
        kinds = {
            self._turn: 8 if self.number == 0 else 70,
            self._edit: 7,
            self._delete: 4,
            self._clear: 1,
            self._word: 4,
            self._pin: 400 if self.number == 0 else 4,
            self._erase: 1,
            self._target: 9,
            self._again: 4,
        }
        return list(kinds), list(kinds.values())

    def _turn(self, number: int, common: dict[str, Any]) -> Record:
        index = self.turns % len(self.dialogue.turns)
        said, first = self.dialogue.turns[index], self.turns - index
        self.turns += 1
        return CreateTurn(
            turn=f"m-{first + index}",
            holder=said.speaker,
            text=MARKS.get(said.expressed or Expressed.NONE, "") + said.text,
            reply_to=None if said.reply_to is None else f"m-{first + said.reply_to}",
            holder_kind=HolderKind.BOT if self.chance.random() < BOTS else HolderKind.USER,
            display_name=f"{said.speaker} ✨" if number % 3 == 0 else None,
            language=self.dialogue.language,
            media=said.media,
            **common,
        )

    def _edit(self, number: int, common: dict[str, Any]) -> Record:
        said = self.chance.choice(self.dialogue.turns)
        revision = self.chance.randrange(4) if self.chance.random() < REVISED else None
        text = self.chance.choice(list(MARKS.values())) + said.text
        return EditTurn(turn=self._some_turn(), text=text, revision=revision, **common)

    def _delete(self, number: int, common: dict[str, Any]) -> Record:
        return DeleteTurn(turn=self._some_turn(), **common)

    def _clear(self, number: int, common: dict[str, Any]) -> Record:
        holder = self.chance.choice([None, self._holder()])
        return ClearTurns(id=f"clear {number}", holder=holder, **common)

    def _word(self, number: int, common: dict[str, Any]) -> Record:
        return self._override(number, common, turn=self._some_turn())

    def _pin(self, number: int, common: dict[str, Any]) -> Record:
        if self.number == 0:  # so many that there is no room for all of them
            target = self._target_id(common, 0)
            return self._override(number, common, Stance.OPPOSE, holder=f"pinned {number}", target=target)
        expires = None
        if self.chance.random() < EXPIRING:
            expires = common["sent_at"] + dt.timedelta(seconds=self.chance.randrange(600))
        target = self._target_id(common, self.chance.randrange(3))
        return self._override(number, common, holder=self._holder(), target=target, expires_at=expires)

    def _override(
        self, number: int, common: dict[str, Any], to: Stance | None = None, **about: Any
    ) -> OverrideStance:
        lifted = to is None and self.chance.random() < LIFTED
        to = None if lifted else to or self.chance.choice(list(Stance))
        return OverrideStance(id=f"word {number}", by="mod", reason="as she said", to=to, **about, **common)

    def _erase(self, number: int, common: dict[str, Any]) -> Record:
        return EraseHolder(id=f"erase {number}", holder=self._holder(), **common)

    def _target(self, number: int, common: dict[str, Any]) -> Record:
        which = self.chance.randrange(PROPOSITIONS) if self.sent else 0
        retired = bool(self.sent) and self.chance.random() < RETIRED
        replaces = None
        if self.sent and self.chance.random() < REPLACING:
            replaces = self._target_id(common, self.chance.randrange(PROPOSITIONS))
        return DeclareTarget(
            id=f"target {number}",
            proposition=self._proposition(which),
            status=TargetStatus.RETIRED if retired else TargetStatus.ACTIVE,
            replaces=replaces,
            **common,
        )

    def _again(self, number: int, common: dict[str, Any]) -> Record:
        return self.chance.choice(self.sent)

    def _some_turn(self) -> str:
        """Mostly one that was said; sometimes one that is still to come."""
        return f"m-{self.chance.randrange(self.turns + 2)}"

    def _holder(self) -> str:
        return self.chance.choice(self.dialogue.turns).speaker

    def _proposition(self, which: int) -> str:
        return f"{self.dialogue.proposition} ({which})" if which else self.dialogue.proposition or "whether x"

    def _target_id(self, common: dict[str, Any], which: int) -> str:
        return keys.target_id(common["tenant"], common["conversation"], self._proposition(which))
