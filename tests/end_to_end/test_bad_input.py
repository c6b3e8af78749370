"""Every malformed record we know of, on real brokers: where it ends, and that the next good turn counts."""

import datetime as dt
import json
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import MessageBatch
from aiokafka.record._crc32c import crc

from stream import kafka, topics
from stream.dead_letters import MAX_KEY_BYTES, MAX_VALUE_BYTES
from stream.settings import Settings
from tests.end_to_end.harness import (
    Collected,
    Producer,
    collecting,
    key,
    now,
    producing,
    running,
    target,
    turn,
)
from tracker import keys, records
from tracker.records import MAX_TEXT_BYTES, Record

Stage = tuple[Producer, Collected]
Made = Callable[[str], bytes | None]  # the malformed value, for a conversation
DAYS = dt.timedelta(days=1)


@pytest.fixture(scope="module")
async def stage(module_settings: Settings) -> AsyncIterator[Stage]:
    """One live agent a broker, for the whole module."""
    async with (
        producing(module_settings) as producer,
        collecting(module_settings) as collected,
        running(module_settings),
    ):
        yield producer, collected


@pytest.fixture
async def room(stage: Stage, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A conversation in which ann has just spoken for the target; in the end she speaks against it."""
    name = request.node.name
    producer, collected = stage
    await producer.records([target(name), turn(name, "first", "+1 yes")])
    yield name
    await producer.records([turn(name, "next", "-1 no longer")])
    await collected.until(lambda seen: seen.applied(name, "create/next/0"), "the next good turn")
    await collected.until(lambda seen: flipped(seen, name), "its flip")


def flipped(seen: Collected, room: str) -> list[str]:
    return [
        event["data"]["turn"]
        for event in seen.events("flips").values()
        if event["data"]["conversation"] == room and event["data"]["turn"] == "next"
    ]


def raw(**fields: Any) -> Made:
    """A turn in JSON with other fields than it should have; None leaves a field out."""

    def made(room: str) -> bytes:
        good = {"conversation": room, "turn": "bad", "holder": "bob", "text": "hm", "sent_at": str_of(now())}
        return json.dumps(
            {name: given for name, given in (good | fields).items() if given != LEFT_OUT}
        ).encode()

    return made


def operation(op: str, **fields: Any) -> Made:
    return raw(op=op, id=f"an {op}", **fields)


def str_of(time: dt.datetime) -> str:
    return time.isoformat()


def plain(value: bytes | None) -> Made:
    return lambda room: value


LEFT_OUT = "left out"

REFUSED: dict[str, tuple[Made, str, str]] = {
    "not UTF-8": (plain(b'{"text": "\xff\xfe"}'), "not_utf8", "value"),
    "not JSON": (plain(b"hello"), "not_json", "value"),
    "cut JSON": (plain(b'{"conversation": "r", "tex'), "not_json", "value"),
    "empty": (plain(b""), "not_json", "value"),
    "null": (plain(None), "null", "value"),
    "JSON null": (plain(b"null"), "not_an_object", "value"),
    "array": (plain(b"[1]"), "not_an_object", "value"),
    "deep": (plain(b"[" * 100_000), "not_an_object", "value"),
    "deep inside": (plain(b'{"op": "create", "x": ' + b"[" * 100_000), "not_json", "value"),
    "text a number": (raw(text=7), "wrong_type", "text"),
    "turn null": (raw(turn=None), "wrong_type", "turn"),
    "media a string": (raw(media="cat.png"), "wrong_type", "media"),
    "holder missing": (raw(holder=LEFT_OUT), "missing_field", "holder"),
    "holder empty": (raw(holder=""), "invalid_value", "holder"),
    "text empty": (raw(text="  "), "empty_text", "text"),
    "lone surrogate": (raw(text="half \ud800"), "lone_surrogate", "value"),
    "lone low surrogate at the end": (raw(text="half \udc00"), "lone_surrogate", "value"),
    "unknown op": (operation("explode"), "unknown_op", "op"),
    "op a number": (raw(op=3), "wrong_type", "op"),
    "text over 16 KiB": (raw(text="é" * (MAX_TEXT_BYTES // 2 + 1)), "too_long", "text"),
    "900 kB": (raw(text="x" * 900_000), "too_long", "text"),
    "name too long": (raw(holder="x" * 1000), "too_long", "holder"),
    "naive time": (raw(sent_at="2026-11-29T20:14:05"), "naive_time", "sent_at"),
    "time in ms": (raw(sent_at=1_796_000_000_000), "wrong_type", "sent_at"),
    "30 days behind": (raw(sent_at=str_of(now() - 30 * DAYS)), "too_late", "sent_at"),
    "year 1": (raw(sent_at="0001-01-01T00:00:00+14:00"), "invalid_value", "sent_at"),
    "repeated turn id": (raw(turn="first", id="another"), "repeated_turn", "turn"),
    "revision below 0": (raw(revision=-1), "invalid_value", "revision"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
async def test_a_malformed_record_ends_as_a_dead_letter(stage: Stage, room: str, name: str) -> None:
    made, reason, field = REFUSED[name]
    value = made(room)
    headers, letter = await dead_letter(stage, key(room), value)
    assert (headers["volteface.reason"], headers["volteface.field"]) == (reason.encode(), field.encode())
    assert headers["volteface.remedy"]
    assert letter.key == key(room)
    assert letter.value == (value if value is None else value[:MAX_VALUE_BYTES])
    assert ("volteface.cut.value" in headers) is (len(value or b"") > MAX_VALUE_BYTES)


async def dead_letter(stage: Stage, *sent: Any) -> tuple[dict[str, bytes], Any]:
    """What becomes of a message: its dead letter."""
    producer, collected = stage
    place = await producer.raw(*sent)
    await collected.until(lambda seen: place in seen.dead_letters, f"the dead letter of {place}")
    return collected.dead_letters[place]


@pytest.mark.parametrize(
    "given",
    [None, b"", b"\xa2", b"default/other", b"room", "default/ünï".encode(), b"k" * 20_000],
    ids=["null", "empty", "no UTF-8", "another's", "no tenant", "not escaped", "long"],
)
async def test_a_wrong_key_would_cost_the_order(stage: Stage, room: str, given: bytes | None) -> None:
    headers, letter = await dead_letter(stage, given, records.encode(turn(room, "bad")))
    assert headers["volteface.reason"] == b"wrong_key"
    assert letter.key == (given if given is None else given[:MAX_KEY_BYTES])


async def test_a_fourth_target(stage: Stage, room: str) -> None:
    producer, _ = stage
    await producer.records([target(room, "whether x"), target(room, "whether y")])
    fourth = records.encode(target(room, "whether z"))
    headers, _ = await dead_letter(stage, key(room), fourth)
    assert headers["volteface.reason"] == b"too_many_targets"


@pytest.mark.parametrize(
    "brought",
    [
        [("trace", b"t" * 100_000)],
        [(f"h{number}", b"v" * 1000) for number in range(300)],
        [("", b"")] * 250_000,
        [("volteface.reason", b"mine"), ("__connect.errors.topic", b"theirs")],
        [("é☕", b"\xff\x00")],
    ],
    ids=["one large", "many", "empty ones", "ours", "not ASCII"],
)
async def test_headers_never_make_a_dead_letter_too_large(
    stage: Stage, room: str, brought: list[tuple[str, bytes]]
) -> None:
    value = b"x" * (350_000 if len(brought) > 1000 else 10)
    headers, letter = await dead_letter(stage, key(room), value, brought)
    ours = {"volteface.reason", "__connect.errors.topic"} & dict(brought).keys()
    assert ours or headers["volteface.reason"] == b"not_json"
    assert all(headers[name] == dict(brought)[name] for name in ours)
    assert letter.value == value


async def accepted(stage: Stage, record: Record, *headers: tuple[str, bytes]) -> dict[str, Any]:
    """What becomes of a record that is applied: its journal entry."""
    producer, collected = stage
    await producer.raw(key(record.conversation), records.encode(record), headers)
    ident = records.record_id(record)
    await collected.until(lambda seen: seen.applied(record.conversation, ident), f"the journal of {ident}")
    entry = collected.applied(record.conversation, ident)
    assert entry is not None
    return entry


async def test_a_good_turn_may_have_large_headers(stage: Stage, room: str) -> None:
    entry = await accepted(stage, turn(room, "bad", holder="bob"), ("trace", b"t" * 100_000))
    assert "marks" not in entry["entry"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_what_a_producer_compresses_is_read(
    stage: Stage, room: str, module_settings: Settings, codec: str
) -> None:
    record = turn(room, "bad", holder="bob")
    async with kafka.running(AIOKafkaProducer, module_settings, compression_type=codec) as producer:
        topic = topics.topic(module_settings, "turns")
        await producer.send_and_wait(topic, records.encode(record), key=key(room))
    await stage[1].until(lambda seen: seen.applied(room, records.record_id(record)), f"a turn in {codec}")


async def test_a_header_whose_name_is_no_utf8_ends_no_agent(
    stage: Stage, room: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = MessageBatch.get_data_buffer
    name, bad = b"no-utf8", b"no-\xff\xfe88"

    def spoilt(batch: MessageBatch) -> bytes:
        raw = bytes(built(batch)).replace(name, bad)
        return raw[:17] + struct.pack(">I", crc(raw[21:])) + raw[21:]

    monkeypatch.setattr(MessageBatch, "get_data_buffer", spoilt)
    await accepted(stage, turn(room, "bad", holder="bob"), (name.decode(), b"x"))
    headers, _ = await dead_letter(stage, key(room), b"nonsense", [(name.decode(), b"x")])
    assert headers["volteface.reason"] == b"not_json"
    assert headers[r"no-\xff\xfe88"] == b"x"


async def test_a_reply_to_a_missing_turn_is_marked(stage: Stage, room: str) -> None:
    entry = await accepted(stage, turn(room, "bad", holder="bob", reply_to="never seen"))
    assert entry["entry"]["marks"] == ["reply_missing"]


async def test_a_turn_older_than_the_newest_is_late_and_folded_at_its_place(stage: Stage, room: str) -> None:
    entry = await accepted(stage, turn(room, "bad", "-1", sent_at=now() - 3 * DAYS))
    assert entry["entry"]["marks"] == ["late"]
    [moved] = entry["states"]
    assert (moved["state"]["stance"], moved["state"]["turn"], moved["state"]["flips"]) == (
        "support",
        "first",
        1,
    )


async def test_a_clock_30_days_ahead_is_set_to_the_receipt(stage: Stage, room: str) -> None:
    before = now()
    entry = await accepted(stage, turn(room, "bad", holder="bob", sent_at=before + 30 * DAYS))
    assert entry["entry"]["marks"] == ["clamped"]
    counted = dt.datetime.fromisoformat(entry["entry"]["sent_at"])
    assert before - dt.timedelta(seconds=1) < counted < now() + dt.timedelta(seconds=1)


async def test_a_repetition_is_no_dead_letter_and_counts_once(stage: Stage, room: str) -> None:
    producer, collected = stage
    record = turn(room, "again", "+0", holder="bob")
    await producer.records([record, record, record])
    await accepted(stage, turn(room, "after", holder="bob"))
    assert [entry["entry"].get("turn") for entry in collected.journal(room)].count("again") == 1
    assert not [1 for _, letter in collected.dead_letters.values() if letter.value == records.encode(record)]


async def test_unknown_fields_are_left_alone(stage: Stage, room: str) -> None:
    producer, collected = stage
    value = raw(turn="odd", platform={"id": 7}, room="x")(room)
    await producer.raw(key(room), value)
    await collected.until(lambda seen: seen.applied(room, keys.record_id("create", "odd", 0)), "the odd turn")


async def test_a_burst_of_a_thousand_bad_records_holds_nobody_up(stage: Stage, room: str) -> None:
    producer, collected = stage
    known = len(collected.dead_letters)
    bad = [(key(room), b"nonsense %d" % number) for number in range(1000)]
    for sent in bad[:-1]:
        await producer.soon(*sent)
    await producer.raw(*bad[-1])
    await collected.until(lambda seen: len(seen.dead_letters) >= known + 1000, "a thousand dead letters")
