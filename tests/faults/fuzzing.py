"""Records as producers send them, half of them mutated: the same every time for a name."""

import json
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from tests.faults import mutations, mutations_of_json, mutations_of_meaning
from tests.faults.mutations import LIMIT_BYTES, Mutation, Sent
from tests.faults.spoken import spoken
from tracker import keys, records
from tracker.records import Record

SHARE = 0.5  # of the records is mutated
MORE = 0.15  # of those in more than one way
LARGE_SHARE = 0.008  # of those as large as a topic takes
NEAR = 50  # so many records back stands what is spliced in

COMMON: tuple[Mutation, ...] = (
    *mutations.COMMON,
    *mutations_of_json.COMMON,
    *mutations_of_meaning.COMMON,
)
LARGE: tuple[Mutation, ...] = (*mutations.LARGE, *mutations_of_json.LARGE)
NAMES = frozenset(mutation.__name__ for mutation in (*COMMON, *LARGE))


def fuzzed(name: str, count: int, share: float = SHARE) -> Iterator[Sent]:
    """The records of a run of that name, one after the other; nothing of them is kept."""
    chance = random.Random(f"mutations of {name}")
    before: deque[Sent] = deque(maxlen=NEAR)
    for record in spoken(name, count):
        before.append(written(chance, record))
        yield mutated(chance, before[-1], chance.choice(before)) if chance.random() < share else before[-1]


def written(chance: random.Random, record: Record) -> Sent:
    """The record in one of the ways that producers write JSON, under its key."""
    value = records.encode(record)
    way = chance.randrange(4)
    if way:
        fields = list(json.loads(value).items())
        if way == 1:  # msgspec puts `op` first, others need not
            chance.shuffle(fields)
        value = json.dumps(dict(fields), ensure_ascii=way == 2, indent=way == 3 or None).encode()
    return Sent(keys.conversation_key(record.tenant, record.conversation), value)


def mutated(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    """One mutation; sometimes more, and then nothing is known beforehand."""
    first = _mutated(chance, sent, other)
    if chance.random() > MORE:
        return first
    further = first
    for _ in range(chance.choice([1, 1, 2])):
        further = _mutated(chance, further, other)
    return replace(further, must=None) if _sendable(further) else first


def _sendable(sent: Sent) -> bool:
    """Whether the producer sends it, and the broker takes it."""
    return len(sent.value or b"") <= LIMIT_BYTES and (sent.key, sent.value) != (None, None)


def _mutated(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    mutation = chance.choice(LARGE if chance.random() < LARGE_SHARE else COMMON)
    return replace(mutation(chance, sent, other), how=(*sent.how, mutation.__name__))


def described(sent: Sent, longest: int = 4000) -> str:
    """The record, so that it can be repeated; of a large one the number of bytes and the beginning."""
    value = sent.value
    shown = repr(value) if len(value or b"") <= longest else f"{(value or b'')[:200]!r} and so on"
    how = ", ".join(sent.how) or "as it was said"
    rest = f"timestamp={sent.timestamp} headers={sent.headers[:5]!r} bytes={len(value or b'')}"
    return f"{how}: key={sent.key!r} value={shown} {rest}"
