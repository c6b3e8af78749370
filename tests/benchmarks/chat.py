"""The chat that benchmarks measure on: made up, the same every time, and the same again after a period.

Every conversation repeats one block of turns. So a turn deep in a conversation reads what a turn near its
beginning read, and what differs between the two measurements is the depth alone.
"""

import datetime as dt
import random

from tracker import keys
from tracker.records import CreateTurn, DeclareTarget, Record, encode

PROPOSITION = "The debate concerning whether the city centre should be closed to private cars"
PERIOD = 20  # turns after which a conversation says the same again
HOLDERS = 5
START = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)  # a live run refuses what is older than its reach
SPEAKING = 0.3  # of the turns take a position
CHANGING = 0.25  # of those go against their holder's habit

_SENTENCE = (
    "honestly the buses here never come on time so I would not count on them for my mother who cannot walk "
    "far but the air in our street got so much better last summer when the bridge was closed and the shops "
    "did fine too according to the paper although nobody asked the people who deliver things before six"
)
_WORDS = _SENTENCE.split()


def _text(random_: random.Random, holder: int) -> str:
    words = " ".join(random_.choices(_WORDS, k=random_.randint(4, 28)))
    if random_.random() > SPEAKING:
        return words
    for_it = (holder % 2 == 0) is (random_.random() > CHANGING)
    return f"{'+1' if for_it else '-1'} {words}"


def _block() -> tuple[tuple[int, str], ...]:
    """(holder, text) of each turn of the block."""
    random_ = random.Random(7)
    holders = [random_.randrange(HOLDERS) for _ in range(PERIOD)]
    return tuple((holder, _text(random_, holder)) for holder in holders)


BLOCK = _block()


def declared(conversation: str) -> DeclareTarget:
    """The record that gives a conversation its target."""
    return DeclareTarget(conversation=conversation, sent_at=START, id="target-1", proposition=PROPOSITION)


def turn(conversation: str, number: int) -> CreateTurn:
    """A conversation's turn by its number, from 1."""
    holder, text = BLOCK[number % PERIOD]
    return CreateTurn(
        conversation=conversation,
        turn=f"m-{number}",
        holder=f"u-{holder}",
        text=text,
        sent_at=START + dt.timedelta(seconds=number),
    )


def keyed(record: Record) -> tuple[bytes, bytes]:
    """(key, value) as they stand in the turns topic."""
    return keys.conversation_key(record.tenant, record.conversation), encode(record)
