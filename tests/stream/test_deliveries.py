"""What becomes of a private tenant's refused records: no letter of theirs names anybody."""

import datetime as dt
from types import SimpleNamespace
from typing import Any

import pytest

from stream.deliveries import Delivery
from tests.stream.fakes import turn
from tracker import keys, records
from tracker.pseudonyms import concealed
from tracker.records import Reason, Refused

KEY = bytes(range(32))
NOW = dt.datetime(2026, 12, 1, tzinfo=dt.UTC)
ACME = keys.conversation_key("acme", "a")
GOOD = records.encode(turn("1", holder="Ann Example", tenant="acme"))
HIDDEN = records.encode(concealed(KEY, turn("1", holder="Ann Example", tenant="acme")))
PRIVATE = frozenset({"acme"})


def delivery(key: bytes | None, value: bytes | None) -> Delivery:
    headers: Any = {"from": b"Ann Example"}
    message = SimpleNamespace(topic="t", partition=0, offset=7, key=key, value=value, headers=headers)
    return Delivery(SimpleNamespace(message=message), NOW)


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        (ACME, GOOD, True),
        (b"wrong", GOOD, True),
        (keys.conversation_key("default", "a"), GOOD, True),
        (ACME, GOOD.replace(b"sent_at", b"sent"), True),
        (b"wrong", GOOD.replace(b"sent_at", b"sent"), True),
        (ACME, b"Ann Example", True),
        (b"wrong", b"Ann Example", True),
        (None, b"\xff Ann Example", True),
        (b"wrong", HIDDEN, False),
        (keys.conversation_key("default", "a"), b"Ann Example", False),
        (keys.conversation_key("default", "a"), GOOD.replace(b"acme", b"open"), False),
    ],
)
def test_a_letter_names_nobody_of_a_private_tenant(key: bytes | None, value: bytes, named: bool) -> None:
    came = delivery(key, value)
    refused = Refused(Reason.NOT_JSON, "value", "no JSON", "send JSON")
    message, headers = came.dead_letter(refused, PRIVATE)
    assert (message.value, "from" in dict(headers)) == ((None, False) if named else (value, True))
    assert came.dead_letter(refused)[0].value == value


def test_a_record_in_clear_is_refused_for_private_tenants_alone() -> None:
    with pytest.raises(Refused) as refusal:
        delivery(ACME, GOOD).item(0, live=False, private=PRIVATE)
    assert refusal.value.reason is Reason.IN_CLEAR
    assert delivery(ACME, HIDDEN).item(0, live=False, private=PRIVATE).record
    assert delivery(ACME, GOOD).item(0, live=False).record
