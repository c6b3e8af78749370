"""What is said: the same records every time for a seed, in rooms of its own."""

import random
from collections.abc import Iterator

from tests.end_to_end.harness import target, turn
from tracker.records import EPOCH, Record

PROPOSITIONS = ("whether x", "whether y")
TEXTS = ("+1 yes", "-1 no", "+0 so so", "hm")
HOLDERS = ("ann", "bo/b", "çem")
LATE, REPLIES = 0.05, 0.5  # shares of the turns


def script(name: str, turns: int, rooms: int = 8) -> list[Record]:
    """Two targets a room, then turns of holders who often change their minds."""
    chance = random.Random(name)
    named = [f"{name} {number}" for number in range(rooms)]
    return [*_targets(named), *(_turn(chance, named, number) for number in range(turns))]


def _targets(rooms: list[str]) -> Iterator[Record]:
    for room in rooms:
        for proposition in PROPOSITIONS:
            yield target(room, proposition, sent_at=EPOCH)


def _turn(chance: random.Random, rooms: list[str], number: int) -> Record:
    late = chance.random() < LATE
    return turn(
        rooms[number % len(rooms)],
        f"m-{number}",
        chance.choice(TEXTS),
        holder=chance.choice(HOLDERS),
        sent_at=EPOCH.replace(year=2025, day=1 if late else 2, hour=number // 60 % 24, minute=number % 60),
        reply_to=f"m-{number - len(rooms)}" if chance.random() < REPLIES else None,
    )
