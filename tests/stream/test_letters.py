"""What a dead letter says, what becomes of it, and the record that is sent again; then on both brokers."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from stream import letter_desk, topics
from stream.dead_letters import MAX_KEY_BYTES, MAX_VALUE_BYTES, Headers, dead_letter
from stream.letter_desk import Done, working
from stream.letter_log import Asked, NoLetters, opened
from stream.letters import (
    RETRY_OF,
    CannotRetry,
    Letter,
    Newest,
    Status,
    Verdict,
    again,
    marked,
    read,
    row,
    whole,
)
from stream.sender import Sender, ToSend, begun
from stream.settings import Settings
from tests.stream.fakes import START, turn
from tracker import keys, records
from tracker.records import Reason, Refused

REFUSED = Refused(Reason.NOT_JSON, "value", "invalid", "send one JSON object")
SOURCE = "volteface.turns/3/41"
KEY = keys.conversation_key("default", "a")
GOOD = records.encode(turn("m-1"))


def message(given: ToSend, at: int = 0, partition: int = 0) -> Any:
    """What a consumer gets of something sent."""
    sent, headers = given
    return SimpleNamespace(
        key=sent.key, value=sent.value, headers=tuple(headers), partition=partition, offset=at,
        timestamp=int(START.timestamp() * 1000) + at,
    )  # fmt: skip


def letter(
    key: bytes | None = KEY,
    value: bytes | None = b"v",
    headers: Headers = (),
    source: str = SOURCE,
    refused: Refused = REFUSED,
    at: int = 0,
) -> Letter:
    found = read(message(dead_letter(key, value, headers, source, refused), at))
    assert isinstance(found, Letter)
    return found


def judged(of: Letter, status: Status = Status.RETRIED, seconds: int = 0) -> Verdict:
    found = read(message(marked(of, status, "eve", START + dt.timedelta(seconds=seconds))))
    assert isinstance(found, Verdict)
    return found


def test_a_letter_is_named_by_where_its_record_stood() -> None:
    found = letter()
    assert (found.id, found.key, found.value, found.time) == (SOURCE, KEY, b"v", START)
    assert (found.conversation, found.cut) == (("default", "a"), False)


@pytest.mark.parametrize(
    "brought",
    [
        [("__connect.errors.topic", b"theirs"), ("__connect.errors.offset", b"7")],
        [("volteface.letter", b"volteface.turns/0/0")],
        [(name, value) for name, value in dead_letter(KEY, b"v", (), "other/1/2", REFUSED)[1]],
    ],
    ids=["a place", "an id", "all of a letter"],
)
def test_a_record_that_brings_another_place_is_not_taken_for_it(brought: Headers) -> None:
    assert letter(headers=brought).id == SOURCE


@pytest.mark.parametrize("key", [KEY, b"", b"\xff", None])
def test_a_verdict_stands_under_the_same_key_without_value(key: bytes | None) -> None:
    sent, headers = marked(letter(key), Status.DROPPED, "eve", START)
    assert (sent.topic, sent.key, sent.value) == ("dead-letters", key, None)
    assert read(message((sent, headers))) == Verdict(
        SOURCE, Status.DROPPED, "eve", "2026-11-29T20:00:00.000Z"
    )


def test_a_refused_null_record_is_a_letter_whatever_it_brings() -> None:
    found = letter(value=None, headers=marked(letter(), Status.DROPPED, "eve", START)[1])
    assert (found.id, found.value) == (SOURCE, None)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("volteface.status", b"retried")],
        [("volteface.status", b"eaten"), ("volteface.letter", SOURCE.encode())],
    ],
)
def test_what_is_neither_is_left_out(headers: Headers) -> None:
    bare = SimpleNamespace(headers=headers, value=None, key=b"k", partition=0, offset=0, timestamp=0)
    assert read(bare) is None


def test_a_row_says_all_but_the_record() -> None:
    found = row(letter(b"default/room%2F7", b"secret"), judged(letter()))
    assert orjson.loads(orjson.dumps(found)) == {
        "id": SOURCE,
        "time": "2026-11-29T20:00:00.000Z",
        "status": "retried",
        "reason": "not_json",
        "field": "value",
        "got": "invalid",
        "remedy": "send one JSON object",
        "tenant": "default",
        "conversation": "room/7",
        "retry_of": None,
        "by": "eve",
        "at": "2026-11-29T20:00:00.000Z",
    }


@pytest.mark.parametrize("key", [None, b"", b"\xff", b"room", b"default/\xc3\xbc"])
def test_a_key_that_is_no_conversations_names_none(key: bytes | None) -> None:
    found = row(letter(key), None)
    assert (found.tenant, found.conversation, found.status) == (None, None, Status.OPEN)


def test_only_the_newest_are_kept_and_each_once() -> None:
    newest = Newest(3)
    for at in range(100):
        newest.add(letter(source=f"t/0/{at}", at=at), None)
        newest.add(letter(source=f"t/0/{at}", at=at + 1), None)
        assert len(newest._rows) <= 6
    assert [found.id for found in newest.rows()] == ["t/0/97", "t/0/98", "t/0/99"]
    assert newest.left_out


def test_as_many_as_asked_for_are_all() -> None:
    newest = Newest(3)
    for at in (2, 0, 1):
        newest.add(letter(source=f"t/0/{at}", at=at), None)
    assert [found.id for found in newest.rows()] == ["t/0/0", "t/0/1", "t/0/2"]
    assert not newest.left_out


def test_a_record_is_sent_again_as_it_came() -> None:
    own = [("trace", b"1"), ("trace", b"2"), ("é", b"\xff")]
    sent, headers = again(letter(b"any", b"\xff\x00", own))
    assert (sent.topic, sent.key, sent.value) == ("turns", b"any", b"\xff\x00")
    assert headers == [(RETRY_OF, SOURCE.encode()), *own]


def test_a_letter_of_a_retried_record_names_the_one_before() -> None:
    sent, headers = again(letter(headers=[("large", b"x" * 17_000), ("trace", b"1")]))
    second = letter(sent.key, sent.value, [*headers, *((f"h{at}", b"x" * 1000) for at in range(40))], "t/0/9")
    assert row(second, None).retry_of == SOURCE
    assert again(second)[1][0] == (RETRY_OF, b"t/0/9")
    assert [name for name, _ in again(second)[1]].count(RETRY_OF) == 1


def test_an_edited_record_is_checked_before_it_is_sent() -> None:
    assert again(letter(), GOOD)[0].value == GOOD
    with pytest.raises(Refused, match="holder"):
        again(letter(), b'{"turn": "m", "conversation": "a", "text": "x", "sent_at": "2026-01-01T00:00:00Z"}')
    with pytest.raises(Refused, match="wrong_key"):
        again(letter(b"other"), GOOD)


def test_a_key_is_made_from_the_record() -> None:
    assert again(letter(b"other", GOOD), fix_key=True)[0].key == KEY
    assert again(letter(None), GOOD, fix_key=True)[0].key == KEY
    with pytest.raises(Refused, match="not_json"):
        again(letter(b"other", b"{"), fix_key=True)


def test_what_was_cut_comes_from_where_it_stood() -> None:
    key, value = b"k" * 5000, b"v" * 900_000
    original = SimpleNamespace(key=key, value=value, headers=(("trace", b"1"),))
    cut = letter(key, value)
    assert (cut.cut, cut.sizes) == (True, (5000, 900_000))
    assert (len(cut.key or b""), len(cut.value or b"")) == (MAX_KEY_BYTES, MAX_VALUE_BYTES)
    made = whole(cut, original)
    assert (made.key, made.value, made.headers, made.id) == (key, value, (("trace", b"1"),), SOURCE)
    with pytest.raises(CannotRetry, match="no longer holds"):
        whole(cut, None)
    for other in ({"value": b"w" * 900_000}, {"value": value + b"v"}, {"key": None}):
        with pytest.raises(CannotRetry, match="another record"):
            whole(cut, SimpleNamespace(**{**vars(original), **other}))


@pytest.mark.parametrize("brought", [b"900000", b"many", b"9" * 5000])
@pytest.mark.parametrize("size", [1, MAX_VALUE_BYTES])
def test_a_record_that_says_it_was_cut_is_not_believed_unless_it_may_be(brought: bytes, size: int) -> None:
    found = letter(value=b"v" * size, headers=[("volteface.cut.value", brought)])
    assert found.cut is (size == MAX_VALUE_BYTES and brought == b"900000")


# On both brokers.


@pytest.fixture
def settings(broker: str, topic_prefix: str) -> Settings:
    return Settings(
        broker=f"kafka://{broker}", topic_prefix=topic_prefix, partitions=3, broker_idempotence=False
    )


@pytest.fixture
async def made(settings: Settings) -> AsyncIterator[Settings]:
    await topics.ensure(settings)
    yield settings


def source(settings: Settings, offset: int) -> str:
    return f"{topics.topic(settings, 'turns')}/0/{offset}"


async def put(settings: Settings, letters: Sequence[ToSend]) -> None:
    sender = Sender(settings)
    await sender.send_with_headers(letters)
    await sender.close()


async def put_numbered(settings: Settings, count: int, *, key: bytes | None = KEY) -> list[str]:
    """Letters of records at these offsets, each once."""
    ids = [source(settings, at) for at in range(count)]
    await put(settings, [dead_letter(key, b"bad %d" % at, (), one, REFUSED) for at, one in enumerate(ids)])
    return ids


async def statuses(settings: Settings) -> dict[str, str]:
    async with opened(settings) as log:
        verdicts = await log.verdicts()
        return {
            letter.id: verdicts[letter.id].status if letter.id in verdicts else "open"
            async for letter in log.letters()
        }


async def turns(settings: Settings, count: int) -> list[Any]:
    """The first records of the turns topic."""
    consumer = AIOKafkaConsumer(bootstrap_servers=settings.bootstrap_servers, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topics.topic(settings, "turns"), at) for at in range(3)])
        found: list[Any] = []
        while len(found) < count:
            found += [one for batch in (await consumer.getmany(timeout_ms=100)).values() for one in batch]
        return found
    finally:
        await consumer.stop()


def untold(ident: str, why: str) -> None:
    raise AssertionError(f"{ident}: {why}")


async def retry(settings: Settings, *ids: str, **rest: Any) -> Done:
    async with working(settings, "eve", rest.pop("tell", untold)) as desk:
        return await desk.retry(Asked(frozenset(ids), rest.pop("reason", None)), **rest)


async def drop(settings: Settings, *ids: str) -> Done:
    async with working(settings, "eve", untold) as desk:
        return await desk.drop(Asked(frozenset(ids)))


async def test_a_run_without_the_topic_is_named_and_none_is_made(settings: Settings) -> None:
    for _ in range(2):
        with pytest.raises(NoLetters, match=settings.topic_prefix):
            async with opened(settings):
                pass


async def test_an_empty_topic_has_no_letters(made: Settings) -> None:
    assert await statuses(made) == {}
    assert await retry(made) == Done()


async def test_letters_are_dealt_with_by_name_and_the_missing_ones_are_named(made: Settings) -> None:
    ids = await put_numbered(made, 4)
    done = await retry(made, ids[1], ids[2], "no/0/1", "nonsense")
    assert (done.count, done.missing) == (2, {"no/0/1", "nonsense"})
    assert (await drop(made, ids[2], ids[3])).count == 2
    assert await statuses(made) == dict(zip(ids, ["open", "retried", "dropped", "dropped"], strict=True))
    sent = await turns(made, 2)
    assert [(one.key, one.value) for one in sent] == [(KEY, b"bad 1"), (KEY, b"bad 2")]
    assert [dict(one.headers) for one in sent] == [{RETRY_OF: ids[1].encode()}, {RETRY_OF: ids[2].encode()}]


@pytest.mark.parametrize("key", [KEY, None, b"", b"\xff"])
async def test_all_takes_what_is_open_and_each_once(made: Settings, key: bytes | None) -> None:
    ids = await put_numbered(made, 70, key=key)
    await put_numbered(made, 70, key=key)  # a crash: the same records come again
    other = dead_letter(
        key, b"late", (), source(made, 99), Refused(Reason.TOO_LATE, "sent_at", "old", "none")
    )
    await put(made, [other])
    assert (await drop(made, *ids[:5])).count == 5
    assert (await retry(made, reason="not_json")).count == 65
    assert (await retry(made, reason="not_json")).count == 0
    found = await statuses(made)
    assert [found[one] for one in ids] == ["dropped"] * 5 + ["retried"] * 65
    assert found[source(made, 99)] == "open"
    assert sorted(one.value for one in await turns(made, 65)) == sorted(b"bad %d" % at for at in range(5, 70))


async def test_what_comes_after_the_ends_is_left_alone(made: Settings) -> None:
    await put_numbered(made, 3)
    async with opened(made) as log:
        assert [one async for one in log.chosen(Asked())]
        ends = log.ends
    await put(made, [dead_letter(KEY, b"new", (), source(made, 7), REFUSED)])
    async with working(made, "eve", untold, ends) as desk:
        assert (await desk.drop(Asked())).count == 3
    assert (await statuses(made))[source(made, 7)] == "open"


async def test_of_a_letter_that_was_cut_the_record_is_read_where_it_stood(made: Settings) -> None:
    large = b"v" * 900_000
    producer = AIOKafkaProducer(bootstrap_servers=made.bootstrap_servers, max_request_size=2_000_000)
    await producer.start()
    name = topics.topic(made, "turns")
    stood = await producer.send_and_wait(name, large, key=KEY, headers=[("trace", b"1")], partition=1)
    await producer.stop()
    here, gone = f"{name}/1/{stood.offset}", f"{topics.topic(made, 'journal')}/1/0"
    await put(made, [dead_letter(KEY, large, (), one, REFUSED) for one in (here, gone)])
    told: dict[str, str] = {}
    done = await retry(made, here, gone, tell=told.__setitem__)
    assert (done.count, done.refused, list(told)) == (1, 1, [gone])
    assert "not this run's" in told[gone]
    sent = [one for one in await turns(made, 2) if dict(one.headers).get(RETRY_OF)]
    assert [(one.key, one.value, one.headers) for one in sent] == [
        (KEY, large, ((RETRY_OF, here.encode()), ("trace", b"1")))
    ]
    assert await statuses(made) == {here: "retried", gone: "open"}


async def test_a_record_that_the_topic_lost_is_refused_by_name(made: Settings) -> None:
    lost = source(made, 500)
    await put(made, [dead_letter(KEY, b"v" * 900_000, (), lost, REFUSED)])
    told: dict[str, str] = {}
    assert (await retry(made, lost, tell=told.__setitem__)).refused == 1
    assert "no longer holds" in told[lost]
    assert (await retry(made, lost, edited=GOOD)).count == 1


@pytest.mark.parametrize("size", [1_500_000, 3_000_000])
async def test_a_record_that_is_too_large_holds_no_other_up(
    made: Settings, size: int, request: pytest.FixtureRequest
) -> None:
    ids = await put_numbered(made, 2)
    told: dict[str, str] = {}
    large = records.encode(turn("m", "x")) + b" " * size
    done = await retry(made, ids[0], tell=told.__setitem__, edited=large)
    if size < 3_000_000 and "tansu" in request.node.name:
        assert done.count == 1  # it takes more than Kafka does
        return
    assert (done.count, done.refused, done.missing) == (0, 1, frozenset())
    assert "too large" in told[ids[0]]
    assert (await retry(made)).count == 2


async def test_a_crash_before_the_verdict_leaves_the_letter_open(
    made: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    [one] = await put_numbered(made, 1)

    async def crash(*_: object) -> None:
        raise ConnectionError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(letter_desk.Desk, "_mark", crash)
        with pytest.raises(ConnectionError):
            await retry(made, one)
    assert await statuses(made) == {one: "open"}
    assert (await retry(made, one)).count == 1
    assert [(sent.value, sent.headers) for sent in await turns(made, 2)] == [
        (b"bad 0", ((RETRY_OF, one.encode()),))
    ] * 2


async def test_what_was_sent_before_a_failure_is_not_sent_again(
    made: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await put_numbered(made, 3)

    async def failing(producer: Any, settings: Settings, given: ToSend, partition: Any = None) -> Any:
        if given[0].value == b"bad 1":
            failed = asyncio.get_running_loop().create_future()
            failed.set_exception(ConnectionError("gone"))
            return failed
        return await begun(producer, settings, given, partition)

    with monkeypatch.context() as patched:
        patched.setattr(letter_desk, "begun", failing)
        with pytest.raises(ConnectionError):
            await retry(made, *ids)
    assert await statuses(made) == dict(zip(ids, ["retried", "open", "retried"], strict=True))
    assert (await retry(made)).count == 1
    assert sorted(sent.value for sent in await turns(made, 3)) == [b"bad 0", b"bad 1", b"bad 2"]
