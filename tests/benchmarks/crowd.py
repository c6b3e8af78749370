"""Living conversations of a platform: a bounded number, each ends after a while and another begins.

What they say are the made-up turns of `chat`, so that a reader has something to read; who says it, and where,
is new in every conversation: what an agent keeps by conversation or by holder, it keeps of more and more.
"""

import datetime as dt
import random
from collections import deque
from typing import NamedTuple

from tests.benchmarks import chat
from tracker.records import CreateTurn, DeclareTarget, DeleteTurn, EditTurn, Record

LATE, EDITS, DELETES, REPLIES = 0.05, 0.02, 0.01, 0.5  # shares; the middle two of all records
LIVES = (20, 200)  # turns of a conversation
HOLDERS = (2, 12)
PROPOSITIONS = (chat.PROPOSITION, "The debate concerning whether the old bridge should be torn down")
RECENT = 40  # turns that may still be corrected or replied to; most stand in the window no more
BEHIND = 10  # turns that a late one comes after, at most
_EARLIER = dt.timedelta(milliseconds=1)  # than the turn it should have come before


class Said(NamedTuple):
    """A turn that may be corrected."""

    turn: str
    sent_at: dt.datetime


class Room:
    """One conversation, from its targets to its last turn."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name, self._chance = name, chance
        self.left = chance.randint(*LIVES)
        self._holders = [f"u-{name}-{number}" for number in range(chance.randint(*HOLDERS))]
        self._undeclared = list(PROPOSITIONS[: chance.randint(1, len(PROPOSITIONS))])
        self._said: deque[Said] = deque(maxlen=RECENT)
        self._turns = 0

    def next(self, now: dt.datetime) -> Record:
        """What it says next: its targets first, then turns, some of them late, and corrections."""
        if self._undeclared:
            return self._declared(now)
        drawn = self._chance.random()
        if self._said and drawn < EDITS:
            turn = self._chance.choice(self._said).turn
            return EditTurn(conversation=self.name, turn=turn, text=self._text(), sent_at=now)
        if self._said and drawn < EDITS + DELETES:
            gone = self._chance.choice(self._said)
            self._said.remove(gone)
            return DeleteTurn(conversation=self.name, turn=gone.turn, sent_at=now)
        return self._turn(now)

    def _declared(self, now: dt.datetime) -> DeclareTarget:
        proposition = self._undeclared.pop()
        name = f"target-{len(self._undeclared)}"
        return DeclareTarget(conversation=self.name, sent_at=now, id=name, proposition=proposition)

    def _turn(self, now: dt.datetime) -> CreateTurn:
        self.left -= 1
        self._turns += 1
        reply_to = self._chance.choice(self._said).turn if self._replies() else None
        said = Said(f"m-{self._turns}", self._late() or now)
        self._said.append(said)
        return CreateTurn(
            conversation=self.name,
            turn=said.turn,
            holder=self._chance.choice(self._holders),
            text=self._text(),
            sent_at=said.sent_at,
            reply_to=reply_to,
        )

    def _replies(self) -> bool:
        return bool(self._said) and self._chance.random() < REPLIES

    def _late(self) -> dt.datetime | None:
        """When a turn was sent that comes after others were sent and have come; None: it is not late."""
        if not self._said or self._chance.random() >= LATE:
            return None
        return self._chance.choice(list(self._said)[-BEHIND:]).sent_at - _EARLIER

    def _text(self) -> str:
        return self._chance.choice(chat.BLOCK)[1]


class Crowd:
    """All conversations that live now. The same seed says the same, but for its times."""

    def __init__(self, living: int, seed: int = 7) -> None:
        self._chance = random.Random(seed)
        self.begun = 0
        self._rooms = [self._opened() for _ in range(living)]
        for room in self._rooms:  # else all of the first would end at about the same time
            room.left = self._chance.randint(1, room.left)

    def records(self, count: int, now: dt.datetime) -> list[Record]:
        """What is said next, in order."""
        return [self._next(now) for _ in range(count)]

    def _next(self, now: dt.datetime) -> Record:
        at = self._chance.randrange(len(self._rooms))
        room = self._rooms[at]
        record = room.next(now)
        if not room.left:
            self._rooms[at] = self._opened()
        return record

    def _opened(self) -> Room:
        self.begun += 1
        return Room(f"room-{self.begun}", self._chance)
