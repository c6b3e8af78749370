"""What is said: the same records every time for a seed, in rooms of its own."""

import datetime as dt
import random
from collections.abc import Iterator

from tests.end_to_end.harness import target, turn
from tracker.records import EPOCH, DeleteTurn, EditTurn, Record

PROPOSITIONS = ("whether x", "whether y")
TEXTS = ("+1 yes", "-1 no", "+0 so so", "hm")
HOLDERS = ("ann", "bo/b", "çem")
LATE, REPLIES = 0.05, 0.5  # shares of the turns
EDITS, DELETES = 0.05, 0.02  # shares of the records


def script(name: str, turns: int, rooms: int = 8) -> list[Record]:
    """Two targets a room, then turns of holders who often change their minds, and corrections of them."""
    chance = random.Random(name)
    named = [f"{name} {number}" for number in range(rooms)]
    return [*_targets(named), *(_said(chance, named, number) for number in range(turns))]


def _targets(rooms: list[str]) -> Iterator[Record]:
    for room in rooms:
        for proposition in PROPOSITIONS:
            yield target(room, proposition, sent_at=EPOCH)


def _said(chance: random.Random, rooms: list[str], number: int) -> Record:
    share, room = chance.random(), rooms[number % len(rooms)]
    earlier = f"m-{number - len(rooms) * chance.randrange(1, 6)}"  # nobody's, where a correction stands there
    if share < EDITS:
        text = chance.choice(TEXTS)
        return EditTurn(
            conversation=room, turn=earlier, text=text, id=f"edit {number}", sent_at=_time(number)
        )
    if share < EDITS + DELETES:
        return DeleteTurn(conversation=room, turn=earlier, id=f"delete {number}", sent_at=_time(number))
    return turn(
        room,
        f"m-{number}",
        chance.choice(TEXTS),
        holder=chance.choice(HOLDERS),
        sent_at=_time(number, late=chance.random() < LATE),
        reply_to=f"m-{number - len(rooms)}" if chance.random() < REPLIES else None,
    )


def _time(number: int, *, late: bool = False) -> dt.datetime:
    return EPOCH.replace(year=2025, day=1 if late else 2, hour=number // 60 % 24, minute=number % 60)
