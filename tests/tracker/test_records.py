"""Records: encoding and reading back, ids and revisions, byte limits at their border, cross-field rules."""

import datetime as dt
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.parsing import parse
from tracker.records import (
    MAX_DESCRIPTION_BYTES,
    MAX_MEDIA,
    MAX_NAME_BYTES,
    MAX_PROPOSITION_BYTES,
    MAX_TEXT_BYTES,
    ClearTurns,
    CreateTurn,
    DeclareTarget,
    DeleteTurn,
    EditTurn,
    EraseHolder,
    HolderKind,
    Media,
    Modality,
    OverrideStance,
    Reason,
    Record,
    Refused,
    TargetStatus,
    check,
    encode,
    op_of,
    record_id,
    revision_of,
)
from tracker.stances import Stance

NOON = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)

letters = st.characters(exclude_categories=["Cs"])
names = st.text(letters, min_size=1, max_size=20)
texts = st.text(letters, max_size=60)
maybe = st.none() | names
revisions = st.integers(0, 2**53 - 1)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
# A day of room at either end, so that no offset leaves the calendar.
times = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), timezones=zones)
media = st.builds(Media, st.sampled_from(Modality), maybe, maybe, maybe)

_base: dict[str, Any] = {"conversation": names, "sent_at": times, "tenant": names}
RECORDS: dict[type[Record], st.SearchStrategy[Record]] = {
    CreateTurn: st.builds(
        CreateTurn,
        **_base,
        turn=names,
        holder=names,
        text=texts.map(lambda text: f"{text}."),
        id=maybe,
        revision=revisions,
        reply_to=maybe,
        holder_kind=st.sampled_from(HolderKind),
        display_name=maybe,
        language=maybe,
        media=st.lists(media, max_size=MAX_MEDIA).map(tuple),
    ),
    EditTurn: st.builds(EditTurn, **_base, turn=names, text=texts, id=maybe, revision=st.none() | revisions),
    DeleteTurn: st.builds(DeleteTurn, **_base, turn=names, id=maybe, revision=revisions),
    ClearTurns: st.builds(ClearTurns, **_base, id=names, holder=maybe),
    DeclareTarget: st.builds(
        DeclareTarget,
        **_base,
        id=names,
        proposition=names,
        status=st.sampled_from(TargetStatus),
        replaces=maybe,
    ),
    OverrideStance: st.tuples(names, names, st.booleans(), st.none() | times).flatmap(
        lambda who: st.builds(
            OverrideStance,
            **_base,
            id=names,
            by=names,
            reason=texts,
            to=st.none() | st.sampled_from(Stance),
            turn=st.just(who[0] if who[2] else None),
            holder=st.just(None if who[2] else who[0]),
            target=st.just(None if who[2] else who[1]),
            expires_at=st.just(None if who[2] else who[3]),
        )
    ),
    EraseHolder: st.builds(EraseHolder, **_base, id=names, holder=names),
}


def create(**fields: Any) -> CreateTurn:
    given_fields: dict[str, Any] = {
        "conversation": "room",
        "sent_at": NOON,
        "turn": "m-1",
        "holder": "u-1",
        "text": "hello",
    }
    return CreateTurn(**(given_fields | fields))


def target(proposition: str) -> DeclareTarget:
    return DeclareTarget(conversation="room", sent_at=NOON, id="i", proposition=proposition)


def override(**fields: Any) -> OverrideStance:
    given_fields: dict[str, Any] = {
        "conversation": "room",
        "sent_at": NOON,
        "id": "i",
        "by": "ada",
        "reason": "",
        "to": None,
    }
    return OverrideStance(**(given_fields | fields))


def refused(record: Record) -> Refused:
    with pytest.raises(Refused) as caught:
        check(record)
    return caught.value


@pytest.mark.parametrize("of", RECORDS, ids=lambda of: of.__name__)
@given(data=st.data())
def test_what_is_encoded_reads_back(of: type[Record], data: st.DataObject) -> None:
    record = data.draw(RECORDS[of])
    read = parse(encode(record))
    assert type(read) is of
    assert read == check(record)
    assert parse(encode(read)) == read
    assert (record_id(read), revision_of(read)) == (record_id(record), revision_of(record))


@pytest.mark.parametrize("of", RECORDS, ids=lambda of: of.__name__)
@given(data=st.data())
def test_times_are_in_utc_once_checked(of: type[Record], data: st.DataObject) -> None:
    record = check(data.draw(RECORDS[of]))
    assert record.sent_at.tzinfo is dt.UTC
    expires_at = getattr(record, "expires_at", None)
    assert expires_at is None or expires_at.tzinfo is dt.UTC


def test_every_member_of_the_union_is_drawn() -> None:
    assert set(RECORDS) == set(get_args(Record))
    assert op_of(create()) == "create"


# Letters of one to four bytes: a limit that counted characters would let the last three through.
@pytest.mark.parametrize("letter", ["a", "é", "猫", "😭"])
@pytest.mark.parametrize(
    ("limit", "field", "make"),
    [
        (MAX_TEXT_BYTES, "text", lambda text: create(text=text)),
        (MAX_NAME_BYTES, "holder", lambda text: create(holder=text)),
        (MAX_NAME_BYTES, "display_name", lambda text: create(display_name=text)),
        (MAX_PROPOSITION_BYTES, "proposition", target),
        (MAX_DESCRIPTION_BYTES, "reason", lambda text: override(turn="m-1", reason=text)),
        (
            MAX_DESCRIPTION_BYTES,
            "media[1].description",
            lambda text: create(media=(Media(Modality.MEME), Media(Modality.IMAGE, description=text))),
        ),
    ],
    ids=["text", "holder", "display_name", "proposition", "reason", "description"],
)
def test_a_byte_limit_holds_at_its_border(letter: str, limit: int, field: str, make: Any) -> None:
    size = len(letter.encode())
    fitting = letter * (limit // size) + "a" * (limit % size)
    assert len(fitting.encode()) == limit
    assert check(make(fitting)) == make(fitting)
    error = refused(make(fitting + "a"))
    assert (error.reason, error.field) == (Reason.TOO_LONG, field)
    assert error.got == f"string of {limit + 1} bytes"
    assert error.remedy == f"at most {limit} bytes of UTF-8"


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=MAX_NAME_BYTES // 5, max_size=MAX_NAME_BYTES)
)
def test_a_byte_limit_counts_bytes_and_nothing_else(name: str) -> None:
    if len(name.encode()) <= MAX_NAME_BYTES:
        assert check(create(holder=name)).holder == name  # type: ignore[union-attr]
    else:
        assert refused(create(holder=name)).reason is Reason.TOO_LONG


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_a_turn_without_text_needs_media(text: str) -> None:
    error = refused(create(text=text))
    assert (error.reason, error.field) == (Reason.EMPTY_TEXT, "text")
    assert check(create(text=text, media=(Media(Modality.MEME),)))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"holder": "u-1"},
        {"target": "t-1"},
        {"turn": "m-1", "holder": "u-1"},
        {"turn": "m-1", "holder": "u-1", "target": "t-1"},
    ],
)
def test_an_override_is_of_one_turn_or_of_one_state(fields: dict[str, str]) -> None:
    error = refused(override(**fields))
    assert (error.reason, error.field) == (Reason.INVALID_VALUE, "turn")
    assert error.remedy == "give turn alone, or holder and target"


def test_a_word_on_one_turn_does_not_expire() -> None:
    error = refused(override(turn="m-1", expires_at=NOON))
    assert (error.reason, error.field) == (Reason.INVALID_VALUE, "expires_at")


def test_an_edit_without_revision_counts_milliseconds() -> None:
    # As a float of seconds this time loses its last millisecond.
    sent_at = dt.datetime(2026, 11, 29, 20, 14, 5, 1000, tzinfo=dt.UTC)
    edit = EditTurn(conversation="room", sent_at=sent_at, turn="m-1", text="x")
    assert revision_of(edit) == 1_795_983_245_001
    assert record_id(edit) == "edit/m-1/1795983245001"


@given(times)
def test_an_edits_revision_is_always_a_revision(sent_at: dt.datetime) -> None:
    edit = EditTurn(conversation="room", sent_at=sent_at, turn="m-1", text="x")
    revision = revision_of(edit)
    assert 0 <= revision < 2**53
    later = msgspec.structs.replace(edit, sent_at=sent_at + dt.timedelta(milliseconds=1))
    assert revision_of(later) >= revision


def test_ids_that_are_brought_are_used() -> None:
    assert record_id(create(id="brought")) == "brought"
    assert record_id(create(revision=2)) == "create/m-1/2"
    assert record_id(DeleteTurn(conversation="room", sent_at=NOON, turn="m-1")) == "delete/m-1/0"
    assert revision_of(target("p")) == 0


def test_a_time_beyond_the_calendar_is_refused() -> None:
    early = dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=10)))
    late = dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(dt.timedelta(hours=-10)))
    for record, field in (
        (create(sent_at=early), "sent_at"),
        (create(sent_at=late), "sent_at"),
        (override(holder="u-1", target="t-1", expires_at=early), "expires_at"),
    ):
        error = refused(record)
        assert (error.reason, error.field) == (Reason.INVALID_VALUE, field)
        assert error.got == "time outside the years 1 to 9999 in UTC"


def test_a_refusal_prints_all_that_mends_it() -> None:
    assert str(Refused(Reason.TOO_LONG, "text", "string of 3 bytes", "at most 2")) == (
        "too_long: text: string of 3 bytes; at most 2"
    )
