"""The mutator is seeded and thorough, and whatever it makes, the parser takes or refuses by name."""

import datetime as dt
from collections import Counter

from stream import dead_letters
from tests.faults.fuzzing import NAMES, described, fuzzed
from tests.faults.mutations import LIMIT_BYTES
from tests.faults.spoken import BEGIN, spoken
from tracker.clock import Clock, counted
from tracker.parsing import parse, parse_keyed
from tracker.records import Reason, Record, Refused, encode, op_of, record_id

MANY = 20_000
# Of the others, those that only a conversation's state tells.
OF_THE_PARSER = {
    Reason.NULL, Reason.NOT_UTF8, Reason.NOT_JSON, Reason.LONE_SURROGATE, Reason.NOT_AN_OBJECT,
    Reason.UNKNOWN_OP, Reason.MISSING_FIELD, Reason.WRONG_TYPE, Reason.INVALID_VALUE, Reason.NAIVE_TIME,
    Reason.TOO_LONG, Reason.EMPTY_TEXT, Reason.WRONG_KEY,
}  # fmt: skip


def test_the_same_name_gives_the_same_records() -> None:
    first, again = list(fuzzed("a", 300)), list(fuzzed("a", 300))
    assert first == again
    assert first[:20] != list(fuzzed("b", 20))


def test_half_is_as_it_was_said() -> None:
    whole = [sent for sent in fuzzed("half", 2000) if not sent.how]
    assert 850 < len(whole) < 1150
    for sent in whole:
        parse_keyed(sent.key, sent.value)


def test_every_kind_of_record_is_said() -> None:
    said = list(spoken("kinds", 2000))
    assert {op_of(record) for record in said} == {
        "create", "edit", "delete", "clear", "target", "override", "erase",
    }  # fmt: skip
    assert len({record_id(record) for record in said}) < len(said)
    assert len({(record.tenant, record.conversation) for record in said}) == 2000 // 60


def test_whatever_is_sent_the_parser_takes_it_or_refuses_it_by_name() -> None:
    """Nothing else is ever raised, and what the mutator knows beforehand holds."""
    reasons: Counter[Reason | None] = Counter()
    used: Counter[str] = Counter()
    for number, sent in enumerate(fuzzed("parser", MANY, share=1.0)):
        used.update(sent.how)
        assert len(sent.value or b"") <= LIMIT_BYTES
        assert (sent.key, sent.value) != (None, None)
        try:
            reason = judged(sent.key, sent.value, sent.headers)
        except Exception as error:
            raise AssertionError(f"number {number}, {described(sent)}") from error
        reasons[reason] += 1
        if sent.must is not None:
            assert reason in (sent.must or {None}), f"number {number}: {reason}, {described(sent)}"
    assert {reason for reason in reasons if reason} == OF_THE_PARSER
    assert used.keys() == NAMES
    assert MANY // 10 < reasons[None] < MANY // 2


def judged(key: bytes | None, value: bytes | None, headers: dead_letters.Headers) -> Reason | None:
    """Why the parser refuses it; of what it refuses a dead letter can be made."""
    try:
        parsed = parse_keyed(key, value)
    except Refused as refused:
        told = (refused.field, refused.got, refused.remedy)
        assert all(told), told
        message, added = dead_letters.dead_letter(key, value, headers, "t/0/1", refused)
        assert len(message.value or b"") <= dead_letters.MAX_VALUE_BYTES
        assert dict(added)["volteface.field"] == refused.field.encode(errors="replace")[:1024]
        return refused.reason
    taken(parsed)
    return None


def taken(record: Record) -> None:
    """A record that is taken can be written, read again, and has a time in live mode or is too late."""
    assert parse(encode(record)) == record
    assert record_id(record)
    for receipt in (BEGIN, BEGIN + dt.timedelta(days=3650)):
        try:
            assert counted(record.sent_at, receipt, Clock())[0] <= receipt + Clock().skew
        except Refused as refused:
            assert refused.reason is Reason.TOO_LATE


def test_a_record_is_told_so_that_it_can_be_repeated() -> None:
    sent = next(one for one in fuzzed("told", 500) if one.how and len(one.value or b"") < 1000)
    told = described(sent)
    assert repr(sent.value) in told
    assert repr(sent.key) in told
    assert sent.how[0] in told
