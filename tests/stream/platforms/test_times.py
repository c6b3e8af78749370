"""Moments: since 1970, and from local times where the clock goes back or forward."""

import datetime as dt
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from stream.platforms.times import LocalClock, since_epoch
from tracker.records import Refused

SECOND = dt.timedelta(seconds=1)
BERLIN = ZoneInfo("Europe/Berlin")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")  # its clock moves by half an hour


def moments(zone: ZoneInfo | None, *times: str) -> list[str]:
    clock = LocalClock(zone)
    return [f"{clock.moment('date', dt.datetime.fromisoformat(time)):%d %H:%M:%S}" for time in times]


@pytest.mark.parametrize(("count", "year"), [(0, 1970), (1_790_841_600, 2026), (-1, 1969)])
def test_seconds_since_1970(count: int, year: int) -> None:
    assert since_epoch("date_unixtime", count, SECOND).year == year


@pytest.mark.parametrize("count", [10**12, -(10**12), 10**30, float("nan"), float("inf")])
def test_a_count_beyond_the_calendar_is_refused(count: float) -> None:
    with pytest.raises(Refused, match="date_unixtime"):
        since_epoch("date_unixtime", count, SECOND)


def test_a_zone_has_summer_and_winter() -> None:
    assert moments(BERLIN, "2026-07-01T12:00", "2026-12-01T12:00") == ["01 10:00:00", "01 11:00:00"]


def test_an_hour_that_comes_twice_keeps_the_order() -> None:
    times = [
        "2026-10-25T01:59",
        "2026-10-25T02:10",
        "2026-10-25T02:50",
        "2026-10-25T02:10",
        "2026-10-25T02:50",
    ]
    assert moments(BERLIN, *times, "2026-10-25T03:00") == [
        "24 23:59:00", "25 00:10:00", "25 00:50:00", "25 01:10:00", "25 01:50:00", "25 02:00:00",
    ]  # fmt: skip


def test_a_time_that_never_was_is_the_moment_of_the_change() -> None:
    times = ["2026-03-29T01:59:59", "2026-03-29T02:00", "2026-03-29T02:30", "2026-03-29T03:00"]
    assert moments(BERLIN, *times) == ["29 00:59:59", "29 01:00:00", "29 01:00:00", "29 01:00:00"]


def test_a_clock_that_moves_by_half_an_hour() -> None:
    assert moments(LORD_HOWE, "2026-10-04T01:59", "2026-10-04T02:15", "2026-10-04T02:30") == [
        "03 15:29:00",
        "03 15:30:00",
        "03 15:30:00",
    ]


def test_another_conversation_has_an_order_of_its_own() -> None:
    clock = LocalClock(BERLIN)
    early = dt.datetime(2026, 10, 25, 2, 10)
    clock.moment("date", dt.datetime(2026, 12, 1))
    clock.restart()
    assert clock.moment("date", early).hour == 0


def test_without_a_zone_it_is_utc_and_is_said_once() -> None:
    with capture_logs() as logs:
        assert moments(None, "2026-07-01T12:00", "2026-07-01T12:01") == ["01 12:00:00", "01 12:01:00"]
        moments(BERLIN, "2026-07-01T12:00")
    assert [(log["event"], log["zone"]) for log in logs] == [("platforms.zone_assumed", "UTC")]


@pytest.mark.parametrize("local", [dt.datetime.min, dt.datetime.max])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Lima"])
def test_the_ends_of_the_calendar(local: dt.datetime, zone: str) -> None:
    try:
        moment = LocalClock(ZoneInfo(zone)).moment("date", local)
    except Refused as refused:
        assert refused.field == "date"
    else:
        assert moment.tzinfo is dt.UTC


@settings(deadline=None)  # a busy machine is no fault
@given(
    st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata", "UTC"]),
    st.lists(st.integers(0, 400 * 24 * 60), min_size=2, max_size=30).map(sorted),
)
def test_what_a_phone_in_that_zone_wrote_in_order_stays_in_order(zone: str, minutes: list[int]) -> None:
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    sent = [start + dt.timedelta(minutes=minute) for minute in minutes]
    clock = LocalClock(ZoneInfo(zone))
    read = [
        clock.moment("date", time.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)) for time in sent
    ]
    assert all(before <= after for before, after in pairwise(read))
    assert all(abs(time - back) <= dt.timedelta(hours=1) for time, back in zip(sent, read, strict=True))
