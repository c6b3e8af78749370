"""What can be wrong with a record as it is sent: its bytes, its key, its headers, its size."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tracker.records import Reason

GOOD: frozenset[Reason] = frozenset()
LIMIT_BYTES = 980_000  # of a value: brokers take a little more, key and headers included

Must = frozenset[Reason] | None


@dataclass(frozen=True, slots=True)
class Sent:
    """A record as it is produced.

    `how` names its mutations, oldest first. `must` is what is known of the parser's answer beforehand: that
    it takes the record (GOOD), that it refuses it for one of these reasons, or nothing.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int | None = None  # in milliseconds, as the sender's clock says; None: as it is
    how: tuple[str, ...] = ()
    must: Must = GOOD

    def valued(self, value: bytes | None, *reasons: Reason) -> "Sent":
        """The same with another value that is refused for one of the reasons."""
        return replace(self, value=value, must=frozenset(reasons))

    def unsure(self, value: bytes) -> "Sent":
        """The same with another value of which nothing is known."""
        return replace(self, value=value, must=None)


# What breaks JSON may break a character, or an escaped pair, too.
_BROKEN = (Reason.NOT_JSON, Reason.NOT_UTF8, Reason.LONE_SURROGATE)

Mutation = Callable[[random.Random, Sent, Sent], Sent]  # the last is another record of the same run


def _slice(chance: random.Random, value: bytes, longest: int = 200) -> tuple[int, int]:
    start = chance.randrange(len(value) + 1)
    return start, min(len(value), start + chance.randrange(1, longest))


def _spot(chance: random.Random, value: bytes) -> int:
    return chance.randrange(len(value) + 1)


def bits_flipped(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    flipped = bytearray(sent.value or b"")
    for _ in range(chance.choice([1, 1, 1, 2, 8])):
        if flipped:
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
    return sent.unsure(bytes(flipped))


def byte_replaced(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    value = sent.value or b""
    at = _spot(chance, value)
    return sent.unsure(value[:at] + chance.choice(b'{}[],:"\\0-eE.tfn ').to_bytes() + value[at + 1 :])


def truncated(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    value = sent.value or b""
    cut = value[: chance.randrange(max(1, len(value.strip())))]  # an object without its end is none
    return sent.valued(cut, *_BROKEN)


def inserted(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    value, noise = sent.value or b"", chance.randbytes(chance.randrange(1, 9))
    at = _spot(chance, value)
    return sent.unsure(value[:at] + noise + value[at:])


def slice_repeated(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    value = sent.value or b""
    start, end = _slice(chance, value)
    return sent.unsure(value[:end] + value[start:end] * chance.choice([1, 1, 3, 50]) + value[end:])


def slice_left_out(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    value = sent.value or b""
    start, end = _slice(chance, value, 20)
    return sent.unsure(value[:start] + value[end:])


def spliced(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    mine, theirs = sent.value or b"", other.value or b""
    return sent.unsure(mine[: _spot(chance, mine)] + theirs[_spot(chance, theirs) :])


def two_in_one(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    between = chance.choice([b"", b"\n", b",", b"\x00"])
    return sent.valued((sent.value or b"") + between + (other.value or b"0"), Reason.NOT_JSON)


def not_utf8(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    # Overlong, half of a pair, beyond Unicode's end, a lone start, a lone rest; NUL may not be two bytes.
    wrong = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80"]
    value = (sent.value or b"").decode(errors="ignore")
    at = chance.randrange(len(value) + 1)  # between characters
    made = value[:at].encode() + chance.choice(wrong) + value[at:].encode()
    return sent.valued(made, Reason.NOT_UTF8)


def nul_bytes(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    value = sent.value or b""
    at = chance.choice([0, _spot(chance, value), len(value)])
    return sent.valued(value[:at] + b"\x00" * chance.choice([1, 4]) + value[at:], *_BROKEN)


def byte_order_mark(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    text = (sent.value or b"").decode(errors="ignore")
    mark = chance.choice(["utf-8-sig", "utf-16", "utf-32"])
    return sent.valued(text.encode(mark), Reason.NOT_JSON, Reason.NOT_UTF8)


def noise(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    return sent.unsure(chance.randbytes(chance.choice([0, 1, 10, 300])))


def null(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    return sent.valued(None, Reason.NULL)


def wrong_key(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    key = sent.key or b""
    keys = [b"", b"\xa2\xff", key.upper(), key + b"x", key[1:], b"%00/" + key, b"k" * 20_000]
    if other.key != sent.key:
        keys.append(other.key or b"")
    return _keyed(sent, chance.choice(keys))


def no_key(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    return _keyed(sent, None)


def _keyed(sent: Sent, key: bytes | None) -> Sent:
    # The value is judged before the key.
    must = frozenset({Reason.WRONG_KEY}) if sent.must == GOOD else sent.must
    return replace(sent, key=key, must=must)


def odd_headers(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    """Headers are nobody's business; numbers where ours stand, so that followers who read them can go on."""
    given = [
        (("trace", chance.randbytes(chance.choice([0, 100, 30_000]))),),
        tuple((f"h{number}", b"v" * 100) for number in range(300)),
        (("", b""),) * 2000,
        (("é☕\x00", b"\xff\x00"), ("é☕\x00", b"twice")),
        (("__connect.errors.offset", b"7"), ("__connect.errors.partition", b"1")),
        (("volteface.letter", b"elsewhere/0/1"), ("__connect.errors.topic", b"\xff")),
        (("volteface.retry.of", b"x/0/0"), ("volteface.status", b"retried"), ("volteface.remedy", b"none")),
    ]
    return replace(sent, headers=chance.choice(given))


def odd_timestamp(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    return replace(sent, timestamp=chance.choice([0, 1, 2**41, 2**53, 2**62]))


def blank_padded(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    """As large as a topic takes; JSON allows blanks around it."""
    value = sent.value or b""
    blanks = chance.choice([b" ", b"\n", b"\t", b"\r"]) * (chance.choice([10_000, LIMIT_BYTES]) - len(value))
    padded = blanks + value if chance.random() < 0.5 else value + blanks
    return replace(sent, value=padded)


def large_noise(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    letter = chance.choice([b"x", b"[", b"{", b'"', b"\xff", b"\\", b'{"a":'])
    return sent.valued((letter * LIMIT_BYTES)[:LIMIT_BYTES], *_NO_OBJECT)


_NO_OBJECT = (Reason.NOT_JSON, Reason.NOT_UTF8, Reason.NOT_AN_OBJECT)

COMMON: tuple[Mutation, ...] = (
    bits_flipped, byte_replaced, truncated, inserted, slice_repeated, slice_left_out, spliced, two_in_one,
    not_utf8, nul_bytes, byte_order_mark, noise, null, wrong_key, no_key, odd_headers,
    odd_timestamp,
)  # fmt: skip
LARGE: tuple[Mutation, ...] = (blank_padded, large_noise)
