import datetime as dt
from types import SimpleNamespace

from stream.receipts import appended

AT = dt.datetime(2026, 11, 29, 20, 0, 0, 250_000, tzinfo=dt.UTC)


def test_milliseconds_of_aiokafka_and_seconds_of_faust_are_the_same_time() -> None:
    assert appended(SimpleNamespace(timestamp_type=1, timestamp=int(AT.timestamp() * 1000))) == AT
    assert appended(SimpleNamespace(timestamp_type=1, timestamp=AT.timestamp())) == AT


def test_a_senders_clock_is_no_receipt() -> None:
    assert appended(SimpleNamespace(timestamp_type=0, timestamp=AT.timestamp())) is None
