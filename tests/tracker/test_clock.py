"""At which time a record counts: clamped, too late, or as it says."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tracker.strategies import START
from tracker.clock import Clock, counted
from tracker.observations import Mark
from tracker.records import Reason, Refused

CLOCK = Clock()
MOMENT = dt.timedelta(microseconds=1)


@pytest.mark.parametrize("ahead", [-CLOCK.reach, dt.timedelta(), CLOCK.skew])
def test_a_time_within_bounds_counts_as_it_is(ahead: dt.timedelta) -> None:
    assert counted(START + ahead, START, CLOCK) == (START + ahead, ())


@pytest.mark.parametrize("ahead", [CLOCK.skew + MOMENT, dt.timedelta(days=30), dt.timedelta(days=365 * 900)])
def test_a_future_time_is_clamped_to_the_receipt_and_marked(ahead: dt.timedelta) -> None:
    assert counted(START + ahead, START, CLOCK) == (START, (Mark.CLAMPED,))


@pytest.mark.parametrize("behind", [CLOCK.reach + MOMENT, dt.timedelta(days=365 * 1900)])
def test_a_time_beyond_the_reach_is_too_late(behind: dt.timedelta) -> None:
    with pytest.raises(Refused) as refused:
        counted(START - behind, START, CLOCK)
    assert (refused.value.reason, refused.value.field) == (Reason.TOO_LATE, "sent_at")


@given(st.datetimes(timezones=st.just(dt.UTC)))
def test_a_replay_takes_any_time(sent_at: dt.datetime) -> None:
    assert counted(sent_at, None, CLOCK) == (sent_at, ())


@given(st.datetimes(timezones=st.just(dt.UTC)), st.datetimes(timezones=st.just(dt.UTC)))
def test_what_counts_is_never_far_ahead_of_the_receipt(sent_at: dt.datetime, receipt: dt.datetime) -> None:
    try:
        time, marks = counted(sent_at, receipt, CLOCK)
    except Refused:
        assert receipt - sent_at > CLOCK.reach
        return
    assert time - receipt <= CLOCK.skew
    assert (time == sent_at) or marks == (Mark.CLAMPED,)
