"""Times as both databases keep and compare them alike: whole microseconds since 1970 in UTC."""

import datetime as dt

from tracker.records import EPOCH

_MICROSECOND = dt.timedelta(microseconds=1)


def number(time: dt.datetime) -> int:
    """A time as it is kept."""
    return (time - EPOCH) // _MICROSECOND


def moment(number: int) -> dt.datetime:
    """A time as it was."""
    return EPOCH + number * _MICROSECOND
