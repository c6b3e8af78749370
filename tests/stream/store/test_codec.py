"""Bytes from values and back, and what is not believed."""

import datetime as dt

import msgspec
import pytest

from stream.store import codec
from stream.store.codec import Misread
from tests.stream.store.builders import OPPOSE, ROOM, START, SUPPORT, WINDOW, commit, entry, messages
from tracker.conversation import Header


def stored(sent_by: str = "live") -> list[bytes]:
    """Version and body as Redis gives them back."""
    _, version, body, *_ = codec.commit_arguments(commit(0), sent_by)
    assert isinstance(body, bytes)
    return [str(version).encode(), body]


def test_equal_commits_are_equal_arguments() -> None:
    one = commit(0, holders={"a": {"x": SUPPORT, "y": OPPOSE}})
    other = commit(0, holders={"a": {"y": OPPOSE, "x": SUPPORT}})
    assert codec.commit_arguments(one, "live") == codec.commit_arguments(other, "live")


def test_the_arguments_are_six_values_and_seven_groups_of_pairs() -> None:
    entries = [entry(1), entry(2, "t", op="target")]
    sent = msgspec.structs.replace(commit(0, entries, trim_before=START), arrived=("m-1",))
    arguments = codec.commit_arguments(sent, "live")
    assert arguments[:2] == [0, 2]
    assert arguments[4:6] == [codec.milliseconds(START), codec.TRIM_LIMIT]
    rest, sizes = arguments[6:], []
    while rest:
        sizes.append(rest[0])
        rest = rest[1 + 2 * int(rest[0]) :]
    # Holders, records, turns, scores, messages, changed entries, and what is no more: a turn's waiting.
    assert sizes == [1, 2, 1, 3, 2, 0, 1]


def test_a_header_is_read_back() -> None:
    assert codec.header_of(stored(), ROOM, "live") == commit(0).header
    assert codec.header_of([None, None], ROOM, "live") == Header()


@pytest.mark.parametrize(
    "reply",
    [
        stored("shadow"),
        [b"2", stored()[1]],
        [b"1", None],
        [b"1", b"{}"],
        [b"1", b"\xff"],
        b"OK",
        None,
        1,
    ],
    ids=["run", "version", "half", "empty", "bytes", "text", "nothing", "number"],
)
def test_a_header_that_is_not_this_conversations(reply: object) -> None:
    with pytest.raises(Misread):
        codec.header_of(reply, ROOM, "live")


@pytest.mark.parametrize("reply", [b"[", 1, [], b'{"a": 1}'])
def test_a_window_that_is_none(reply: object) -> None:
    assert codec.window_of(None) == ()
    assert codec.window_of(msgspec.json.encode(WINDOW)) == WINDOW
    with pytest.raises(Misread):
        codec.window_of(reply)


def test_states_and_ledger_are_read_by_place() -> None:
    assert codec.holders_of([None, b"{}"], ["a", "b"]) == {"b": {}}
    assert codec.present([b"1", None, b"3"], ["a", "b", "c"]) == {"a", "c"}
    for read in (codec.holders_of, codec.present):
        with pytest.raises(Misread):
            read(None, ["a"])
        with pytest.raises(Misread):
            read([None, None], ["a"])


def test_an_outbox_is_read_in_order() -> None:
    packed = msgspec.msgpack.encode(messages(1))
    fields = [codec.outbox_field(arrival).encode() for arrival in (10, 9, 2**53)]
    assert sorted(fields) == [fields[1], fields[0], fields[2]]
    assert list(codec.outbox_of([fields[0], packed, fields[1], packed])) == [9, 10]
    assert codec.outbox_of([]) == {}


@pytest.mark.parametrize("reply", [None, [b"1"], [b"x", b""], [None, b""], [b"1", b"\xc1"], [b"1", None]])
def test_an_outbox_that_is_none(reply: object) -> None:
    with pytest.raises(Misread):
        codec.outbox_of(reply)


def test_milliseconds_are_exact() -> None:
    assert codec.milliseconds(dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) == 0
    assert codec.milliseconds(START + dt.timedelta(microseconds=999)) == codec.milliseconds(START)
    assert codec.milliseconds(dt.datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=dt.UTC)) == -1
