"""Twitch's IRC: turns, deletions, clears, missing capabilities, and bad lines."""

import datetime as dt
import io
from typing import Any

import pytest
from hypothesis import given

from stream.platforms import Line, twitch_irc
from stream.platforms.lines import MAX_LINE_BYTES, raw_lines
from tests.stream.platforms.mutations import SAMPLES, changed_bytes
from tests.stream.platforms.round_trips import taken
from tracker.records import ClearTurns, CreateTurn, DeleteTurn, HolderKind, Reason, Refused, record_id

IRC = SAMPLES / "twitch" / "irc.txt"
TAGS = {"id": "a1", "room-id": "500", "tmi-sent-ts": "1790841600123", "user-id": "11"}


def lines_of(raw: bytes) -> list[Line]:
    return list(twitch_irc.read(raw_lines(io.BytesIO(raw))))


def line(rest: str, **tags: Any) -> bytes:
    merged = TAGS | {name.replace("_", "-"): value for name, value in tags.items()}
    written = ";".join(f"{name}={value}" for name, value in merged.items() if value is not ...)
    return (f"@{written} {rest}" if written else rest).encode()


def said(text: str = "hi", **tags: Any) -> bytes:
    return line(f":ada!ada@ada.tmi.twitch.tv PRIVMSG #quay :{text}", **tags)


def read(*lines: bytes) -> list[Any]:
    return [each.result for each in lines_of(b"\r\n".join(lines))]


def test_a_rooms_lines() -> None:
    assert [(each.number, type(each.result)) for each in lines_of(IRC.read_bytes())] == [
        (3, CreateTurn), (4, CreateTurn), (6, CreateTurn), (7, CreateTurn), (9, DeleteTurn),
        (10, ClearTurns), (11, ClearTurns),
    ]  # fmt: skip


def test_turns() -> None:
    first, reply, action, resub = (each.result for each in lines_of(IRC.read_bytes())[:4])
    assert isinstance(first, CreateTurn) and isinstance(reply, CreateTurn)
    assert (first.turn, first.holder, first.conversation, first.display_name) == ("a1", "11", "500", "Ada")
    assert first.sent_at == dt.datetime(2026, 10, 1, 8, 0, 0, 123000, tzinfo=dt.UTC)
    assert (reply.reply_to, reply.holder_kind, reply.display_name) == (
        "a1",
        HolderKind.MODERATOR,
        "Mara Pier",
    )
    assert reply.text == "-1 never : ever"
    assert isinstance(action, CreateTurn) and isinstance(resub, CreateTurn)
    assert (action.text, action.display_name) == ("shrugs", "ines")
    assert (resub.text, resub.holder) == ("+0 undecided", "13")


def test_a_deletion_that_names_its_room_by_name_alone() -> None:
    deletion = line(":tmi.twitch.tv CLEARMSG #quay :hi", room_id="", target_msg_id="a1")
    (refused,) = read(deletion)
    assert (refused.reason, refused.field, "ROOMSTATE" in refused.remedy) == (
        Reason.MISSING_FIELD,
        "room-id",
        True,
    )
    _, gone = read(said(), deletion)
    assert (gone.conversation, gone.turn) == ("500", "a1")


def test_a_clear_has_the_same_id_again() -> None:
    one = line(":tmi.twitch.tv CLEARCHAT #quay :mara", target_user_id="12")
    whole = line(":tmi.twitch.tv CLEARCHAT #quay")
    first, again, everybody, later = read(
        one, one, whole, line(":tmi.twitch.tv CLEARCHAT #quay", tmi_sent_ts="9")
    )
    assert (first.holder, everybody.holder) == ("12", None)
    assert first == again
    assert len({record_id(each) for each in (first, everybody, later)}) == 3


@pytest.mark.parametrize("rest", ["CLEARCHAT #quay :mara", "CLEARCHAT #quay mara"])
def test_a_person_without_an_id_never_clears_the_room(rest: str) -> None:
    (refused,) = read(line(f":tmi.twitch.tv {rest}"))
    assert (refused.reason, refused.field) == (Reason.MISSING_FIELD, "target-user-id")


def test_without_the_capabilities_it_is_told() -> None:
    plain = b":ada!ada@ada.tmi.twitch.tv PRIVMSG #quay :hi"
    (refused,) = read(plain)
    assert (refused.field, "CAP REQ" in refused.remedy) == ("room-id", True)


@pytest.mark.parametrize("name", ["id", "user-id", "tmi-sent-ts", "room-id"])
@pytest.mark.parametrize("value", [..., ""])
def test_missing_tags_are_refused_by_name_and_the_next_is_read(name: str, value: Any) -> None:
    refused, turn = read(said(**{name.replace("-", "_"): value}), said(id="a2"))
    assert (refused.reason, refused.field) == (Reason.MISSING_FIELD, name)
    assert turn.turn == "a2"


@pytest.mark.parametrize("stamp", ["soon", "-1", "1.5", "١", "9" * 30, "999999999999999"])
def test_a_bad_time(stamp: str) -> None:
    (refused,) = read(said(tmi_sent_ts=stamp))
    assert (refused.reason, refused.field) == (Reason.INVALID_VALUE, "tmi-sent-ts")


@pytest.mark.parametrize(
    ("raw", "reason", "field"),
    [
        (said(""), Reason.EMPTY_TEXT, "text"),
        (said("é" * 9000), Reason.TOO_LONG, "text"),
        (said(user_id="x" * 600), Reason.TOO_LONG, "user-id"),
        (b"hello", Reason.INVALID_VALUE, "line"),
        (b"PING :\xff", Reason.NOT_UTF8, "line"),
        (b"x" * (MAX_LINE_BYTES + 1), Reason.TOO_LONG, "line"),
    ],
)
def test_bad_lines(raw: bytes, reason: Reason, field: str) -> None:
    refused, turn = read(raw, said())
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.field) == (reason, field)
    assert isinstance(turn, CreateTurn)


@pytest.mark.parametrize(
    "rest",
    ["JOIN #quay", "PART #quay", "NOTICE #quay :slow", "WHISPER ada :hi", "376 ada :>", "USERSTATE #quay"],
)
def test_what_is_no_turn(rest: str) -> None:
    assert read(line(f":tmi.twitch.tv {rest}")) == []


@pytest.mark.parametrize(
    ("first", "known"),
    [
        (said(), True),
        (b":tmi.twitch.tv CAP * ACK :twitch.tv/tags", True),
        (b":tmi.twitch.tv 001 ada :Welcome, GLHF!", True),
        (b"PING :tmi.twitch.tv", True),
        (b'{"conversation": "tmi.twitch.tv PRIVMSG"}', False),
        (b"13/10/2026, 21:41 - Ines: :tmi.twitch.tv PRIVMSG #quay :hi", False),
        (b"", False),
    ],
)
def test_it_is_known_by_its_first_line(first: bytes, known: bool) -> None:
    assert twitch_irc.recognises(first) is known


@given(changed_bytes(IRC.read_bytes()))
def test_no_bytes_break_it(raw: bytes) -> None:
    taken(lines_of(raw))
