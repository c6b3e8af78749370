"""What can be odd or wrong with what a record says: its times, revisions, ids, media, rooms."""

import random
from dataclasses import replace
from typing import Any

from tests.faults.mutations import GOOD, Must, Mutation, Sent
from tests.faults.mutations_of_json import ODD_TEXTS, Fields, dumped, fields_of, must_be, of_fields, op_of
from tracker import keys
from tracker.records import MAX_DESCRIPTION_BYTES, MAX_MEDIA, MAX_TEXT_BYTES, Reason

TEXTUAL = ("create", "edit")
REVISED = ("create", "edit", "delete")
FAR_TIMES = (
    "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2038-01-19T03:14:08Z",
    "2026-01-01T00:00:00+14:00",
)  # fmt: skip
ODD_TIMES = (
    "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "2016-12-31T23:59:60Z", "now", " ",
    "2026-01-01t00:00:00z", "2026-01-01T00:00:00.123456789123Z", "2026-01-01T00:00:00+99:99",
    "2026-01-01T00:00:00-00:00", "2026-02-30T00:00:00Z", "２０２６-01-01T00:00:00Z", "2026-01-01 00:00:00Z",
    "+002026-01-01T00:00:00Z",
)  # fmt: skip
WRONG_MEDIA: tuple[Any, ...] = (
    {"modality": "smell"}, {}, {"modality": 7}, {"modality": "meme", "uri": 7}, "cat.png", None,
    {"modality": "meme", "description": "x" * (MAX_DESCRIPTION_BYTES + 1)},
)  # fmt: skip
EXPIRES = "2026-01-01T00:10:00Z"


def time_far(chance: random.Random, fields: Fields) -> Must:
    fields["sent_at"] = chance.choice(FAR_TIMES)
    return GOOD


def time_beyond(chance: random.Random, fields: Fields) -> Must:
    fields["sent_at"] = chance.choice(["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
    return must_be(Reason.INVALID_VALUE)


def time_naive(chance: random.Random, fields: Fields) -> Must:
    fields["sent_at"] = "2026-01-01T00:00:00"
    return must_be(Reason.NAIVE_TIME)


def time_in_ms(chance: random.Random, fields: Fields) -> Must:
    fields["sent_at"] = 1_796_000_000_000 + chance.randrange(1000)
    return must_be(Reason.WRONG_TYPE)


def time_odd(chance: random.Random, fields: Fields) -> Must:
    fields[chance.choice(["sent_at", "sent_at", "expires_at"])] = chance.choice(ODD_TIMES)
    return None


def reply_odd(chance: random.Random, fields: Fields) -> Must:
    fields["reply_to"] = chance.choice([fields.get("turn", "x"), "never said", "m-0", "m-9999"])
    return GOOD


def id_shared(chance: random.Random, fields: Fields) -> Must:
    """Another content under an id, or another id for a turn, that may have been applied before."""
    fields["id"] = f"shared {chance.randrange(6)}"
    if chance.random() < 0.5 and "turn" in fields:
        fields["turn"] = "m-0"
    return GOOD


def revision_odd(chance: random.Random, fields: Fields) -> Must:
    allowed = (0, 1, 2**53 - 1)
    fields["revision"] = chance.choice([*allowed, -1, 2**53, 2**63, 2**64, 10**400])
    if fields["revision"] in allowed or op_of(fields) not in REVISED:
        return GOOD if fields["revision"] < 2**64 else None
    return must_be(Reason.INVALID_VALUE, Reason.WRONG_TYPE, Reason.NOT_JSON)


def text_at_the_limit(chance: random.Random, fields: Fields) -> Must:
    more = chance.choice([-1, 0, 1, 2])
    fields["text"] = "+1" + "é" * (MAX_TEXT_BYTES // 2 - 1 + more)
    return must_be(Reason.TOO_LONG) if more > 0 and op_of(fields) in TEXTUAL else GOOD


def media_many(chance: random.Random, fields: Fields) -> Must:
    count = chance.choice([MAX_MEDIA, MAX_MEDIA + 1, 1000])
    fields["media"] = [{"modality": "meme", "description": "\u202e" * (at % 50)} for at in range(count)]
    return must_be(Reason.INVALID_VALUE) if count > MAX_MEDIA and op_of(fields) == "create" else GOOD


def media_wrong(chance: random.Random, fields: Fields) -> Must:
    fields["media"] = [{"modality": "image"}, chance.choice(WRONG_MEDIA)]
    reasons = (Reason.INVALID_VALUE, Reason.MISSING_FIELD, Reason.WRONG_TYPE, Reason.TOO_LONG)
    return must_be(*reasons) if op_of(fields) == "create" else GOOD


def word_unknown(chance: random.Random, fields: Fields) -> Must:
    names = {"create": "holder_kind", "target": "status", "override": "to"}
    fields[names.get(op_of(fields), "status")] = chance.choice(["USER", "", "perhaps", "🦀" * 100])
    return must_be(Reason.INVALID_VALUE) if op_of(fields) in names else GOOD


def text_blank(chance: random.Random, fields: Fields) -> Must:
    fields["text"] = chance.choice(["", " ", "\n\t\r", "\u3000\u2003"])
    alone = op_of(fields) == "create" and not fields.get("media")
    return must_be(Reason.EMPTY_TEXT) if alone else GOOD


def override_of_much(chance: random.Random, fields: Fields) -> Must:
    for name in ("turn", "holder", "target", "expires_at"):
        if chance.random() < 0.5:
            fields[name] = EXPIRES if name == "expires_at" else chance.choice(["m-0", "x"])
    return None


def another_room(chance: random.Random, sent: Sent, other: Sent) -> Sent:
    """A room of an odd name, with the key that belongs to it."""
    fields = fields_of(sent) if sent.must == GOOD else None
    if fields is None or "conversation" not in fields:
        return sent
    # What its name begins with is kept: it tells the run, and no other tenant has a room of that name.
    room = fields["conversation"] = f"{fields['conversation'][:60]}{chance.choice(ODD_TEXTS)[:30]}"
    key = keys.conversation_key(fields.get("tenant", "default"), room)
    return replace(sent, key=key, value=dumped(chance, fields))


COMMON: tuple[Mutation, ...] = (
    *map(of_fields, (
        time_far, time_beyond, time_naive, time_in_ms, time_odd, reply_odd, id_shared, revision_odd,
        text_at_the_limit, media_many, media_wrong, word_unknown, text_blank, override_of_much,
    )),
    another_room,
)  # fmt: skip
